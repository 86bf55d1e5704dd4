-- A session and its agents have one owner: owners names the session that works for a person.
-- Older programs give each agent an owner of its own, and must not write beside newer ones.
ALTER TABLE sessions ADD COLUMN family bytea; -- that session, of an agent; NULL if it is the session itself
CREATE INDEX sessions_family ON sessions (family) WHERE family IS NOT NULL;

-- The data folder with the files and commands of a session: only its server can go on with it.
-- Empty if they are in a workspace elsewhere, which every server reaches; NULL as long as no
-- server has claimed the session.
ALTER TABLE sessions ADD COLUMN machine bytea;

ALTER TABLE servers ADD COLUMN draining boolean NOT NULL DEFAULT false; -- it claims nothing, and hands over what it owns
ALTER TABLE servers ADD COLUMN busy bigint NOT NULL DEFAULT 0;          -- sessions in which something is under way
