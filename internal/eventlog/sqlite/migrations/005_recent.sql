-- Sessions are listed by the time of their last change. Every append would change an index
-- of that time. This one has the time in units of about a second (2^20 microseconds), so
-- that it changes once for many appends; a listing sorts the sessions of a unit itself.
DROP INDEX IF EXISTS sessions_modified; -- it is removed before if a page of it is damaged
ALTER TABLE sessions ADD COLUMN recent INTEGER NOT NULL DEFAULT 0;
UPDATE sessions SET recent = modified >> 20;
CREATE INDEX sessions_recent ON sessions (recent) WHERE NOT deleted;

CREATE TRIGGER session_added AFTER INSERT ON sessions
BEGIN
	UPDATE sessions SET recent = new.modified >> 20 WHERE id = new.id;
END;

CREATE TRIGGER session_modified AFTER UPDATE OF modified ON sessions WHEN new.modified >> 20 <> old.recent
BEGIN
	UPDATE sessions SET recent = new.modified >> 20 WHERE id = new.id;
END;
