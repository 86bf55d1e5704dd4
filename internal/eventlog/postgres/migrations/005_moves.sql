-- Sessions can be moved here from another store. Until that is marked as moved, their rows are
-- hidden: like those of deleted sessions that are kept for their forks, so that also programs that
-- know nothing of moves neither show nor claim nor change them.
CREATE TABLE moves (
	name   bytea   PRIMARY KEY,           -- random; the other store has it, too
	origin bytea   NOT NULL,              -- where the sessions come from, for people
	done   boolean NOT NULL DEFAULT false -- true if they are shown
);

-- The hidden sessions, which have arrived as a whole.
CREATE TABLE arrivals (
	session bigint  PRIMARY KEY, -- row of the session
	move    bytea   NOT NULL,
	origin  bigint  NOT NULL,    -- its row in the other store
	digest  bytea   NOT NULL,    -- of what the other store had of it
	kept    boolean NOT NULL,    -- true if it is deleted there, too, and kept for its forks
	UNIQUE (move, origin)
);

-- Their jobs and costs, which are not to be done or counted before.
CREATE TABLE arriving_jobs (
	move     bytea   NOT NULL,
	id       bytea   NOT NULL,
	name     bytea   NOT NULL, -- name of the session
	kind     bytea   NOT NULL,
	epoch    bytea   NOT NULL,
	first    bigint  NOT NULL,
	last     bigint  NOT NULL,
	attempts integer NOT NULL,
	due      bigint,
	error    bytea   NOT NULL
);
CREATE INDEX arriving_jobs_move ON arriving_jobs (move);
CREATE TABLE arriving_costs (move bytea NOT NULL, LIKE costs);
CREATE INDEX arriving_costs_move ON arriving_costs (move);
