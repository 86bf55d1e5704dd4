-- Whether the sessions are being moved to another store. There is a row from the first attempt on.
CREATE TABLE moved (
	id    INTEGER PRIMARY KEY CHECK (id = 1),
	name  BLOB    NOT NULL, -- random name of the move, which the other store has, too
	state INTEGER NOT NULL, -- 0: the sessions are here; 1: they are there, and nobody sees them yet; 2: they are there
	place TEXT    NOT NULL, -- the other store, for people; empty in state 0
	at    INTEGER NOT NULL  -- microseconds since 1970
) STRICT;
