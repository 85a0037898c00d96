-- What the active projector of a version says of itself at least each second, while it can read the log and write here: how far
-- behind the log it is. Who reads it learns from its age, by this database's clock, whether there is such a projector.
CREATE TABLE turnlog.projector_beats (
  version integer PRIMARY KEY,
  slot text NOT NULL DEFAULT 'live',
  beaten_at timestamptz NOT NULL,
  lag_events bigint,
  lag_ms bigint NOT NULL,
  FOREIGN KEY (version, slot) REFERENCES turnlog.projections ON DELETE CASCADE
);
