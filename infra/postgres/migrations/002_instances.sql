-- Times are this database's clock, the only one that all instances share.
CREATE TABLE turnlog.instances (
  instance_id text PRIMARY KEY,
  started_at timestamptz NOT NULL,
  last_beat_at timestamptz NOT NULL
);
