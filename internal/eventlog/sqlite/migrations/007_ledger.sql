-- What model requests have cost, summed up in the transaction that adds the events which say
-- so. A row is about the events of one session (session), which may be counted with another
-- one (root): agents are counted with the session that started them. Rows of deleted sessions
-- are kept under the empty name.
CREATE TABLE costs (
	session      TEXT    NOT NULL,
	root         TEXT    NOT NULL,
	day          TEXT    NOT NULL, -- local date
	model        TEXT    NOT NULL,
	purpose      TEXT    NOT NULL,
	requests     INTEGER NOT NULL,
	failed       INTEGER NOT NULL,
	unpriced     INTEGER NOT NULL,
	unreported   INTEGER NOT NULL,
	input        INTEGER NOT NULL,
	output       INTEGER NOT NULL,
	cacheread    INTEGER NOT NULL,
	cachewrite   INTEGER NOT NULL,
	cachewrite1h INTEGER NOT NULL,
	reasoning    INTEGER NOT NULL,
	nanousd      INTEGER NOT NULL,
	PRIMARY KEY (session, root, day, model, purpose)
) STRICT, WITHOUT ROWID;

CREATE INDEX costs_root ON costs (root);
CREATE INDEX costs_day ON costs (day);

-- The sessions whose events are not in the sums: those of older versions. The names are read
-- from the index of names, because a page of the table may be damaged.
CREATE TABLE uncounted (
	session INTEGER PRIMARY KEY
) STRICT;

INSERT INTO uncounted SELECT id FROM sessions INDEXED BY names;
