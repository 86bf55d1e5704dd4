-- Secrets are sealed with a key that is not in the store. Those that are there are sealed
-- in the same transaction (sealStored). This is the list of the keys that have sealed a
-- value, by the ids that sealed values begin with, so that a missing key is noticed without
-- looking at the values.
CREATE TABLE keys (
	id BLOB PRIMARY KEY
) STRICT, WITHOUT ROWID;

-- Whether bytes of secrets that were not sealed may be left in the files: 0 no, 1 in the
-- write-ahead log, 2 in pages that no table has.
ALTER TABLE meta ADD COLUMN clear INTEGER NOT NULL DEFAULT 0;
