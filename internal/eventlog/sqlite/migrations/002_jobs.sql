-- Upkeep that is to be done: one row for a session, a kind and a beginning. The
-- index on due is what a timer waits for; nobody looks through the sessions.
CREATE TABLE jobs (
	id       TEXT    PRIMARY KEY,
	session  INTEGER NOT NULL,
	kind     TEXT    NOT NULL,
	epoch    TEXT    NOT NULL,
	first    INTEGER NOT NULL, -- the events that it is about
	last     INTEGER NOT NULL,
	attempts INTEGER NOT NULL,
	due      INTEGER,          -- microseconds since 1970; the end of the lease if somebody holds it; NULL if it is set aside
	holder   TEXT    NOT NULL,
	error    TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX jobs_once ON jobs (session, kind, first);
CREATE INDEX jobs_due ON jobs (due) WHERE due IS NOT NULL;
