-- Problems with the transparency log that a process knows and others can't see, as JSON; absent without any. A process reports them each
-- second, so a reader ignores old rows.
CREATE TABLE turnlog.tlog_findings (
  reporter uuid PRIMARY KEY,
  reported_at timestamptz NOT NULL,
  finding jsonb NOT NULL
);

-- Roles of services have rights on the tables of their time only.
DO $$
DECLARE service name;
BEGIN
  FOR service IN
    SELECT DISTINCT pg_get_userbyid(right_of.grantee) FROM pg_namespace, aclexplode(nspacl) AS right_of
    WHERE nspname = 'turnlog' AND right_of.privilege_type = 'USAGE' AND right_of.grantee NOT IN (0, nspowner)
  LOOP
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON turnlog.tlog_findings TO %I', service);
  END LOOP;
END $$;
