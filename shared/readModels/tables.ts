/**
 * The tables of the read models, each described once. The rows' types, both adapters' statements
 * and the version under which the tables are kept come from here, so a new column stands here and
 * in the projection that fills it. Every row carries the revision of the last event of its stream
 * that was applied, and skips what it has seen; but for those of `usage`, which are sums.
 */
import type { AccountHold, AccountLimits, AccountRetention, Scope } from '../accounts/events.ts';
import type { AgentParameters } from '../agents/parameters.ts';
import type { Position } from '../ports/eventStore.ts';
import type { DisabledReason } from '../webhooks/events.ts';
import { REPLAY_TABLES } from '../replays/tables.ts';
import { SESSION_TABLES } from '../sessions/tables.ts';
import { boolean, integer, json, orNull, table, text, word, type RowOf } from './table.ts';
import { USAGE_TABLE } from '../usage/tables.ts';

export const TABLES = {
  accounts: table({
    columns: {
      account_id: text,
      name: text,
      opened_at: text,
      limits: json<AccountLimits>(),
      retention: json<AccountRetention>(),
      hold: json<AccountHold>(),
      erased: boolean,
      revision: integer,
    },
    key: ['account_id'],
  }),

  api_keys: table({
    columns: {
      key_id: text,
      account_id: text,
      name: text,
      hash: text,
      scopes: json<Scope[]>(),
      issued_at: text,
      expires_at: orNull(text),
      revoked_at: orNull(text),
      revision: integer,
    },
    key: ['key_id'],
    indexes: [{ on: ['account_id', 'key_id'] }, { on: ['hash'] }],
  }),

  agents: table({
    columns: {
      agent_id: text,
      account_id: text,
      name: text,
      instruction: text,
      model: text,
      tool: orNull(text),
      component: text,
      /** Whether older turns of its sessions are summed up. */
      compaction: boolean,
      /** How its model is asked; null where the agent does not say. */
      parameters: orNull(json<AgentParameters>()),
      created_at: text,
      updated_at: text,
      /** Left out of lists; an erased one is deleted too. */
      deleted: boolean,
      erased: boolean,
      /** Position of the last event applied; the highest names the state of an account's list. */
      position: text,
      revision: integer,
    },
    key: ['agent_id'],
    indexes: [
      { on: ['account_id', 'agent_id'], where: 'NOT deleted' },
      { on: ['account_id', 'position'] },
    ],
    longRows: true,
  }),

  ...SESSION_TABLES,

  usage: USAGE_TABLE,

  webhooks: table({
    columns: {
      webhook_id: text,
      account_id: text,
      /** Closed, as the log has it, and so is the secret. */
      url: text,
      secret: text,
      /** Types of events that are sent; null: all. */
      types: orNull(json<string[]>()),
      /** Why nothing is sent; null while it is enabled. */
      disabled: orNull(word<DisabledReason>()),
      created_at: text,
      updated_at: text,
      /** Position of its first event: what comes after it is sent. */
      position: word<Position>(),
      deleted: boolean,
      erased: boolean,
      revision: integer,
    },
    key: ['webhook_id'],
    indexes: [
      { on: ['account_id', 'webhook_id'], where: 'NOT erased' },
      { on: ['webhook_id'], where: 'disabled IS NULL AND NOT deleted' },
    ],
  }),

  ...REPLAY_TABLES,

  /** For processes that have to let go of what they remember of an erased stream. */
  erasures: table({
    columns: {
      stream: text,
      account_id: text,
      /** The keys that were destroyed. */
      key_ids: json<string[]>(),
      position: word<Position>(),
      revision: integer,
    },
    key: ['stream'],
    indexes: [{ on: ['position'] }],
  }),
};

/** Streams that can't be followed: kept beside the rows, and changed with them. */
export const PARKED_STREAMS = table({
  columns: { stream: text, revision: integer, event_type: text, error: text },
  key: ['stream'],
});

export type TableName = keyof typeof TABLES;
export const tableNames = Object.keys(TABLES) as TableName[];

export type Rows = { [Name in TableName]: RowOf<(typeof TABLES)[Name]> };
export type AccountRow = Rows['accounts'];
export type ApiKeyRow = Rows['api_keys'];
export type AgentRow = Rows['agents'];
export type SessionRow = Rows['sessions'];
export type TurnRow = Rows['turns'];
export type ReplayRow = Rows['replays'];
export type ReplaySessionRow = Rows['replay_sessions'];
export type ReplayTurnRow = Rows['replay_turns'];
export type WebhookRow = Rows['webhooks'];
export type ErasureRow = Rows['erasures'];
export type UsageRow = Rows['usage'];

/** Tables whose rows follow a stream, each by its revision. */
export type FollowedTable = Exclude<TableName, 'usage'>;

/** Tables whose rows go together with what they belong to: by which column. */
export const OWNERS = {
  api_keys: 'account_id',
  turns: 'session_id',
  session_labels: 'session_id',
  replay_sessions: 'replay_id',
  replay_turns: 'replay_id',
  usage: 'account_id',
  turn_words: 'session_id',
} as const;
export type OwnedTable = keyof typeof OWNERS;

/** Tables whose indexes, too, hold what has to go with an erasure. */
export const INDEXED_TEXTS: readonly TableName[] = ['session_labels', 'turn_words'];
