-- The transparency logs, one for each origin; the one of the highest `opened` is read. `checkpoint` (JSON) is the last event that has
-- a leaf, `note` the newest signed checkpoint.
CREATE TABLE turnlog.tlog_trees (
  origin text PRIMARY KEY,
  opened bigint NOT NULL UNIQUE,
  size bigint NOT NULL DEFAULT 0,
  checkpoint text,
  note text
);
-- Tiles and entry bundles by their paths, as C2SP tlog-tiles names them.
CREATE TABLE turnlog.tlog_tiles (
  origin text NOT NULL REFERENCES turnlog.tlog_trees ON DELETE CASCADE,
  path text COLLATE "C" NOT NULL,
  bytes bytea NOT NULL,
  PRIMARY KEY (origin, path)
);
-- The event (JSON) before the first one of each entry bundle.
CREATE TABLE turnlog.tlog_bundles (
  origin text NOT NULL REFERENCES turnlog.tlog_trees ON DELETE CASCADE,
  bundle bigint NOT NULL,
  before text NOT NULL,
  PRIMARY KEY (origin, bundle)
);
