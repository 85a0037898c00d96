-- The attempts of replayed turns in progress (shared/replays/replayAttempts.ts). They outlive the process that makes them, and need
-- not outlive the database, so they are in no write-ahead log.
CREATE UNLOGGED TABLE turnlog.replay_attempts (
  replay_id text NOT NULL,
  session_id text NOT NULL,
  turn integer NOT NULL,
  process_id text NOT NULL,
  PRIMARY KEY (session_id, turn, process_id)
);

-- Roles of services have rights on the tables of their time only.
DO $$
DECLARE service name;
BEGIN
  FOR service IN
    SELECT DISTINCT pg_get_userbyid(right_of.grantee) FROM pg_namespace, aclexplode(nspacl) AS right_of
    WHERE nspname = 'turnlog' AND right_of.privilege_type = 'USAGE' AND right_of.grantee NOT IN (0, nspowner)
  LOOP
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON turnlog.replay_attempts TO %I', service);
  END LOOP;
END $$;
