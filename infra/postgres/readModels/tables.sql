-- One copy of the read models, made in the schema that the search path names. Another shape is another version of the schema
-- (copies.ts), rebuilt from the log: nothing here is ever migrated. Ids compare as text byte by byte, so that pages have one
-- order everywhere; json, not jsonb, because it gives back what it was given.
CREATE TABLE parked_streams (
  stream text COLLATE "C" PRIMARY KEY, revision bigint NOT NULL, event_type text NOT NULL, error text NOT NULL
);

CREATE TABLE accounts (
  account_id text COLLATE "C" PRIMARY KEY, name text NOT NULL, opened_at text NOT NULL, revision bigint NOT NULL
);

CREATE TABLE api_keys (
  key_id text COLLATE "C" PRIMARY KEY, account_id text COLLATE "C" NOT NULL, name text NOT NULL, hash text NOT NULL,
  scopes json NOT NULL, issued_at text NOT NULL, expires_at text, revoked_at text, revision bigint NOT NULL
);
CREATE INDEX ON api_keys (account_id, key_id);

CREATE TABLE agents (
  agent_id text COLLATE "C" PRIMARY KEY, account_id text COLLATE "C" NOT NULL, name text NOT NULL, instruction text NOT NULL,
  model text NOT NULL, tool text, component text NOT NULL, created_at text NOT NULL, updated_at text NOT NULL,
  deleted boolean NOT NULL, position text COLLATE "C" NOT NULL, revision bigint NOT NULL
);
CREATE INDEX ON agents (account_id, agent_id) WHERE NOT deleted;
CREATE INDEX ON agents (account_id, position);

CREATE TABLE sessions (
  session_id text COLLATE "C" PRIMARY KEY, agent_id text COLLATE "C" NOT NULL, account_id text COLLATE "C" NOT NULL,
  status text NOT NULL, turns bigint NOT NULL, created_at text NOT NULL, updated_at text NOT NULL, revision bigint NOT NULL
);
CREATE INDEX ON sessions (account_id, session_id);
CREATE INDEX ON sessions (account_id, agent_id, session_id);

-- Every turn is written at least twice. Room in its page lets the second row version stay out of the indexes.
CREATE TABLE turns (
  session_id text COLLATE "C" NOT NULL, turn bigint NOT NULL, status text NOT NULL, input text NOT NULL, output text,
  model text NOT NULL, tool_used text NOT NULL, tool_calls json NOT NULL, tokens json, error json, started_at text NOT NULL,
  ended_at text, owner text NOT NULL, deadline text NOT NULL, revision bigint NOT NULL, PRIMARY KEY (session_id, turn)
) WITH (fillfactor = 80);
CREATE INDEX ON turns (session_id, turn) WHERE status = 'running';
