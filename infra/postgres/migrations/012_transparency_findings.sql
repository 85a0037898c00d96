-- Problems with the transparency log that a process knows and others can't see, as JSON; absent without any. A process reports them each
-- second, so a reader ignores old rows.
CREATE TABLE turnlog.tlog_findings (
  reporter uuid PRIMARY KEY,
  reported_at timestamptz NOT NULL,
  finding jsonb NOT NULL
);
