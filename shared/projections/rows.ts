import type { Scope } from '../domain/account/events.ts';
import type { Tokens } from '../domain/schema.ts';
import type { ToolCalledData } from '../domain/session/events.ts';

/** Every row carries the revision of the last event of its stream that was applied, and skips what it has seen. */
interface Applied {
  revision: number;
}

export interface AccountRow extends Applied {
  account_id: string;
  name: string;
  opened_at: string;
}

export interface ApiKeyRow extends Applied {
  key_id: string;
  account_id: string;
  name: string;
  hash: string;
  scopes: Scope[];
  issued_at: string;
  expires_at: string | null;
  revoked_at: string | null;
}

export interface AgentRow extends Applied {
  agent_id: string;
  account_id: string;
  name: string;
  instruction: string;
  model: string;
  tool: string | null;
  component: string;
  created_at: string;
  updated_at: string;
  deleted: boolean;
  /** Position of the last event applied; its maximum over an account's agents names the state of the account's list. */
  position: string;
}

export interface SessionRow extends Applied {
  session_id: string;
  agent_id: string;
  account_id: string;
  /** `running` while its last turn is open. */
  status: 'idle' | 'running';
  /** How many turns began. */
  turns: number;
  created_at: string;
  updated_at: string;
}

export type TurnStatus = 'running' | 'completed' | 'failed' | 'interrupted';

export interface TurnRow extends Applied {
  session_id: string;
  turn: number;
  status: TurnStatus;
  input: string;
  output: string | null;
  model: string;
  tool_used: string;
  tool_calls: Omit<ToolCalledData, 'turn'>[];
  tokens: Tokens | null;
  /** Of a failed turn: its code and message; of an interrupted one: the reason as the code. */
  error: { code: string; message: string } | null;
  started_at: string;
  ended_at: string | null;
  /** The instance that runs it, and when it gives up at the latest. */
  owner: string;
  deadline: string;
}

export interface Rows {
  accounts: AccountRow;
  api_keys: ApiKeyRow;
  agents: AgentRow;
  sessions: SessionRow;
  turns: TurnRow;
}

export type TableName = keyof Rows;
