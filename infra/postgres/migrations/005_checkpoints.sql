-- A checkpoint is the last event that was applied: a log that does not hold it is another one.
-- `position` is what the read models show everything up to, which may lie beyond that event.
-- `log_changed` says why the log is not followed; null while it is.
ALTER TABLE turnlog.projections
  ADD COLUMN log_id text,
  ADD COLUMN event_position text COLLATE "C",
  ADD COLUMN event_id text,
  ADD COLUMN event_hash text,
  ADD COLUMN log_changed text;
