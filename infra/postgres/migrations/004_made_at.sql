-- When a version of the read models was first made in this database. The numbers of versions have no order, and a release only
-- drops the versions that were made before its own.
ALTER TABLE turnlog.projections ADD COLUMN made_at timestamptz NOT NULL DEFAULT now();
