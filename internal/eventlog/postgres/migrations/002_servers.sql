-- Several servers may share the tables. The row of a server says that it is there: it counts
-- beat up for as long as it lives. No clock of any machine is compared with another.
CREATE TABLE servers (
	id      bytea   PRIMARY KEY, -- random, new at each start
	machine bytea   NOT NULL,
	address bytea   NOT NULL, -- where other servers reach it
	version bytea   NOT NULL,
	beat    bigint  NOT NULL DEFAULT 0,
	dead    boolean NOT NULL DEFAULT false
);

-- Which servers may write. Every transaction of a server changes its row, which is not that in
-- servers: a transaction that is stuck keeps nobody from marking its server as dead. Without a
-- row, nothing can be written, and all that the server owns is free.
CREATE TABLE writers (
	server     bytea  PRIMARY KEY,
	generation bigint NOT NULL,
	last       bytea  NOT NULL DEFAULT '' -- a random name of the last transaction, as in meta
);

-- Which server may write to a session. Every write checks the fence, and keeps others from
-- claiming the session until it is committed. Names and not rows of sessions: a session is
-- claimed before it exists.
CREATE TABLE owners (
	name   bytea  PRIMARY KEY,
	server bytea  NOT NULL,
	fence  bigint NOT NULL
);
CREATE INDEX owners_server ON owners (server);
CREATE SEQUENCE fences;

-- False: one process writes, that with the generation. True: the servers do.
ALTER TABLE meta ADD COLUMN shared boolean NOT NULL DEFAULT false;
