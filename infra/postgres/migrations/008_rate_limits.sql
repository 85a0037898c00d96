-- The requests of each key in the second that ends at `expire` (milliseconds since 1970), as the package rate-limiter-flexible
-- counts them. Nothing is lost with them, so they are in no write-ahead log.
CREATE UNLOGGED TABLE turnlog.rate_limits (
  key text PRIMARY KEY,
  points integer NOT NULL DEFAULT 0,
  expire bigint
);
