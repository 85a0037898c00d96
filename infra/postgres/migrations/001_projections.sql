-- Where each copy of the read models is. `slot` is `live` (queries are answered from it) or `building` (a rebuild fills it).
-- Positions compare as text, byte by byte, whatever the database's collation.
CREATE TABLE turnlog.projections (
  version integer NOT NULL,
  slot text NOT NULL CHECK (slot IN ('live', 'building')),
  generation integer NOT NULL,
  epoch bigint NOT NULL DEFAULT 0,
  position text COLLATE "C",
  complete boolean NOT NULL DEFAULT false,
  PRIMARY KEY (version, slot)
);
