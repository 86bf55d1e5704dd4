-- Texts of people and programs are bytes: PostgreSQL's text refuses zero bytes and what is
-- not UTF-8, and bytes are compared alike everywhere, whatever the locale of the database.

-- One row: which process may write. Opening the store counts it up, and every transaction
-- locks it against that until it is committed.
CREATE TABLE meta (
	id         integer PRIMARY KEY CHECK (id = 1),
	generation bigint NOT NULL,
	last       bytea  NOT NULL DEFAULT '', -- a random name of the last transaction, for a process that has lost the reply to its commit
	oldest     integer NOT NULL -- the oldest version of a program that may use the tables
);

INSERT INTO meta (id, generation, oldest) VALUES (1, 0, 1);

-- The index. A session's row changes in the transaction that adds its records, so it always
-- knows where the log must end. dir, busy and listed are copies of what info says, for
-- filters.
CREATE TABLE sessions (
	id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	name     bytea   NOT NULL UNIQUE,
	seq      bigint  NOT NULL,               -- the last event
	head     bytea   NOT NULL,               -- the chain's hash after it
	created  bigint  NOT NULL,               -- microseconds since 1970
	modified bigint  NOT NULL,
	parent   bigint,                         -- the session it was forked from
	shared   bigint  NOT NULL DEFAULT 0,     -- how many of the parent's events come before its own
	base     bytea,                          -- the chain's hash after those
	deleted  boolean NOT NULL DEFAULT false, -- kept only for its forks
	damaged  bigint,                         -- the first damaged event, if quarantined
	reason   bytea,
	active   boolean NOT NULL,
	info     bytea   NOT NULL,               -- JSON
	dir      bytea   NOT NULL,
	busy     boolean NOT NULL,
	listed   boolean NOT NULL,
	words    bigint  NOT NULL DEFAULT 0,     -- the last event that the index of words has; -1 if it has to be made anew
	counted  boolean NOT NULL DEFAULT true   -- false if its costs are not in the sums
);

CREATE INDEX sessions_forks ON sessions (parent) WHERE parent IS NOT NULL;
CREATE INDEX sessions_modified ON sessions (modified, id) WHERE NOT deleted;
CREATE INDEX sessions_active ON sessions (modified) WHERE active AND NOT deleted;
CREATE INDEX sessions_uncounted ON sessions (id) WHERE NOT counted;
CREATE INDEX sessions_unread ON sessions (id) WHERE words < seq;

-- The events. A row is what one append added: its events as lines, and the chain's hash
-- after the last of them. They are not compressed, so that the time of an append does not
-- depend on what it says.
CREATE TABLE records (
	session bigint NOT NULL,
	first   bigint NOT NULL,
	head    bytea  NOT NULL,
	body    bytea  NOT NULL,
	PRIMARY KEY (session, first)
);
ALTER TABLE records ALTER COLUMN body SET STORAGE EXTERNAL;

CREATE TABLE secrets (
	session bigint NOT NULL,
	name    bytea  NOT NULL,
	value   bytea  NOT NULL, -- sealed
	PRIMARY KEY (session, name)
);

-- The keys that have sealed a value, so that a missing one is noticed.
CREATE TABLE keys (id bytea PRIMARY KEY);

CREATE TABLE jobs (
	id       bytea   PRIMARY KEY,
	session  bigint  NOT NULL,
	kind     bytea   NOT NULL,
	epoch    bytea   NOT NULL,
	first    bigint  NOT NULL,
	last     bigint  NOT NULL,
	attempts integer NOT NULL,
	due      bigint, -- microseconds since 1970; the end of the lease if somebody holds it; NULL if it is set aside
	holder   bytea   NOT NULL,
	error    bytea   NOT NULL,
	UNIQUE (session, kind, first)
);
CREATE INDEX jobs_due ON jobs (due, id) WHERE due IS NOT NULL;

-- What model requests have cost, summed up in the transaction that adds the events which say
-- so. Rows of deleted sessions are kept under the empty name.
CREATE TABLE costs (
	session      bytea  NOT NULL,
	root         bytea  NOT NULL, -- the session that it is counted with
	day          bytea  NOT NULL, -- local date
	model        bytea  NOT NULL,
	purpose      bytea  NOT NULL,
	requests     bigint NOT NULL,
	failed       bigint NOT NULL,
	unpriced     bigint NOT NULL,
	unreported   bigint NOT NULL,
	input        bigint NOT NULL,
	output       bigint NOT NULL,
	cacheread    bigint NOT NULL,
	cachewrite   bigint NOT NULL,
	cachewrite1h bigint NOT NULL,
	reasoning    bigint NOT NULL,
	nanousd      bigint NOT NULL,
	PRIMARY KEY (session, root, day, model, purpose)
);
CREATE INDEX costs_root ON costs (root);
CREATE INDEX costs_day ON costs (day);

-- The words of messages. A message with more words than fit has none, and is always read.
CREATE TABLE messages (
	session bigint NOT NULL,
	seq     bigint NOT NULL,
	words   tsvector,
	PRIMARY KEY (session, seq)
);
CREATE INDEX messages_words ON messages USING gin (words);
