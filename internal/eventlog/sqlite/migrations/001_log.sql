-- One row: which process may write. Opening the store counts it up.
CREATE TABLE meta (
	id         INTEGER PRIMARY KEY CHECK (id = 1),
	generation INTEGER NOT NULL
) STRICT;

INSERT INTO meta (id, generation) VALUES (1, 0);

-- The index. A session's row changes in the transaction that adds its records,
-- so it always knows where the log must end.
CREATE TABLE sessions (
	id       INTEGER PRIMARY KEY AUTOINCREMENT, -- never used twice: readers may still hold an old one
	name     TEXT    NOT NULL,
	seq      INTEGER NOT NULL,           -- the last event
	head     BLOB    NOT NULL,           -- the chain's hash after it
	created  INTEGER NOT NULL,           -- microseconds since 1970
	modified INTEGER NOT NULL,
	parent   INTEGER,                    -- the session it was forked from
	shared   INTEGER NOT NULL DEFAULT 0, -- how many of the parent's events come before its own
	base     BLOB,                       -- the chain's hash after those
	deleted  INTEGER NOT NULL DEFAULT 0, -- kept only for its forks
	damaged  INTEGER,                    -- the first damaged event, if quarantined
	reason   TEXT,
	active   INTEGER NOT NULL DEFAULT 0,
	info     TEXT    NOT NULL            -- JSON
) STRICT;

CREATE UNIQUE INDEX names ON sessions (name);
CREATE INDEX forks ON sessions (parent) WHERE parent IS NOT NULL;

-- The events. A row is what one append added: its events as lines of text, and
-- the chain's hash after the last of them. The key is the session's id, shifted
-- left by 32 bits, plus the number of the first event: a session's rows lie
-- side by side in the table, and no second index is needed.
CREATE TABLE records (
	key  INTEGER PRIMARY KEY,
	head BLOB NOT NULL,
	body BLOB NOT NULL
) STRICT;

CREATE TABLE secrets (
	session INTEGER NOT NULL,
	name    TEXT    NOT NULL,
	value   BLOB    NOT NULL,
	PRIMARY KEY (session, name)
) STRICT, WITHOUT ROWID;
