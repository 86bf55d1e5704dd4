-- Sessions are listed by the time of their last change. This is the only index that
-- every append changes; filters are evaluated along it.
CREATE INDEX sessions_modified ON sessions (modified) WHERE NOT deleted;
