/**
 * The tables of the read models, each described once, in its feature's folder. The rows' types, both
 * adapters' statements and the version under which the tables are kept follow from them. Every row
 * carries the revision of the last event of its stream that was applied, and skips earlier ones;
 * rows of `usage` are sums instead.
 */
import { FEATURE_OWNERS, FEATURE_TABLES } from '../features.ts';
import { integer, table, text, type RowsOf } from './table.ts';

export const TABLES = FEATURE_TABLES;

/** Streams that can't be followed: kept beside the rows, and changed with them. */
export const PARKED_STREAMS = table({
  columns: { stream: text, revision: integer, event_type: text, error: text },
  key: ['stream'],
});

export type TableName = keyof typeof TABLES;
export const tableNames = Object.keys(TABLES) as TableName[];

export type Rows = RowsOf<typeof TABLES>;
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

/** Tables whose rows are removed with their owner, and the column that names it. */
export const OWNERS = FEATURE_OWNERS satisfies Partial<Record<TableName, string>>;
export type OwnedTable = keyof typeof OWNERS;
