-- The requests of each key in the second that ends at `expire` (milliseconds since 1970, by the database's clock). Nothing is
-- lost with them, so they are in no write-ahead log.
CREATE UNLOGGED TABLE turnlog.rate_limits (
  key text PRIMARY KEY,
  points integer NOT NULL DEFAULT 0,
  expire bigint
);
