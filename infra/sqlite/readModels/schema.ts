/**
 * The shape of the read models' file. Another shape gets another version, thus another file, which is rebuilt from the log:
 * nothing is ever migrated. `agents` and `turns` may hold long texts, which rowid tables carry better.
 */
export const SCHEMA_VERSION = 2;

export const SCHEMA = `
CREATE TABLE IF NOT EXISTS checkpoint (only_row INTEGER PRIMARY KEY CHECK (only_row = 1), position TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS parked_streams (
  stream TEXT PRIMARY KEY, revision INTEGER NOT NULL, event_type TEXT NOT NULL, error TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS accounts (
  account_id TEXT PRIMARY KEY, name TEXT NOT NULL, opened_at TEXT NOT NULL, revision INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS api_keys (
  key_id TEXT PRIMARY KEY, account_id TEXT NOT NULL, name TEXT NOT NULL, hash TEXT NOT NULL, scopes TEXT NOT NULL,
  issued_at TEXT NOT NULL, expires_at TEXT, revoked_at TEXT, revision INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS api_keys_of_account ON api_keys (account_id, key_id);

CREATE TABLE IF NOT EXISTS agents (
  agent_id TEXT PRIMARY KEY, account_id TEXT NOT NULL, name TEXT NOT NULL, instruction TEXT NOT NULL, model TEXT NOT NULL,
  tool TEXT, component TEXT NOT NULL, created_at TEXT NOT NULL, updated_at TEXT NOT NULL, deleted INTEGER NOT NULL,
  position TEXT NOT NULL, revision INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS agents_of_account ON agents (account_id, agent_id) WHERE deleted = 0;
CREATE INDEX IF NOT EXISTS agent_list_version ON agents (account_id, position);

CREATE TABLE IF NOT EXISTS sessions (
  session_id TEXT PRIMARY KEY, agent_id TEXT NOT NULL, account_id TEXT NOT NULL, status TEXT NOT NULL, turns INTEGER NOT NULL,
  created_at TEXT NOT NULL, updated_at TEXT NOT NULL, revision INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS sessions_of_account ON sessions (account_id, session_id);
CREATE INDEX IF NOT EXISTS sessions_of_agent ON sessions (account_id, agent_id, session_id);

CREATE TABLE IF NOT EXISTS turns (
  session_id TEXT NOT NULL, turn INTEGER NOT NULL, status TEXT NOT NULL, input TEXT NOT NULL, output TEXT, model TEXT NOT NULL,
  tool_used TEXT NOT NULL, tool_calls TEXT NOT NULL, tokens TEXT, error TEXT, started_at TEXT NOT NULL, ended_at TEXT,
  owner TEXT NOT NULL, deadline TEXT NOT NULL, revision INTEGER NOT NULL, PRIMARY KEY (session_id, turn)
) STRICT;
CREATE INDEX IF NOT EXISTS open_turns ON turns (session_id, turn) WHERE status = 'running';
`;
