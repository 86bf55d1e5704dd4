-- Which database it was that was written to last. After a failover to a standby, which begins a new
-- timeline, and in a restored database, numbers and events can be missing that were given away. An
-- era lasts for as long as that cannot have happened.
ALTER TABLE meta ADD COLUMN system   bytea  NOT NULL DEFAULT ''; -- identifier of the cluster; empty if it was never noted
ALTER TABLE meta ADD COLUMN timeline bigint NOT NULL DEFAULT 0;
ALTER TABLE meta ADD COLUMN era      bigint NOT NULL DEFAULT 0;
