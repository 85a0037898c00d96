-- How far each generation of the read models is. `slot` is `live` (the projector's, which queries are
-- answered from once it is complete) or `building` (a rebuild fills it). `epoch` counts the writers
-- that the generation has had.
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
