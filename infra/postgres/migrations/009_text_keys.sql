-- The keys of texts, each wrapped by a master key that is not here. No log can bring them back: they outlive every rebuild.
-- A destroyed key is a row without what wraps it.
CREATE TABLE turnlog.text_keys (
  key_id text COLLATE "C" PRIMARY KEY CHECK (length(key_id) = 16),
  master_key_id text CHECK (length(master_key_id) = 16),
  wrapped bytea CHECK (length(wrapped) = 60),
  CHECK ((master_key_id IS NULL) = (wrapped IS NULL))
);
-- What is destroyed leaves a dead row, which is to be cleared soon and not when a fifth of the table has changed.
ALTER TABLE turnlog.text_keys SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1);

-- The streams whose texts are being erased: noted before their logs say so, so that somebody goes on with it whatever happens, and says why.
CREATE TABLE turnlog.erasures (
  stream text PRIMARY KEY,
  why text NOT NULL,
  n bigint GENERATED ALWAYS AS IDENTITY
);
