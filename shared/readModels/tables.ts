/**
 * The tables of the read models, each described once, in its feature's folder. The types of rows, the
 * statements of both adapters and the version number are derived from them. Every row has the revision
 * of the last event applied from its stream, and skips earlier events. Rows of `usage` and `storage` are
 * sums instead.
 */
import { FEATURE_OWNERS, FEATURE_TABLES } from '../features.ts';
import { integer, table, text, type RowsOf } from './table.ts';

export const TABLES = FEATURE_TABLES;

/** Streams with an event that can't be applied. Changed in the same transactions as the rows. */
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
export type ReplaySettingsRow = Rows['replay_settings'];
export type ReplaySessionRow = Rows['replay_sessions'];
export type ReplayTurnRow = Rows['replay_turns'];
export type WebhookRow = Rows['webhooks'];
export type ErasureRow = Rows['erasures'];
export type UsageRow = Rows['usage'];
export type StorageRow = Rows['storage'];

/** Tables whose rows have the revision of a stream. */
export type FollowedTable = Exclude<TableName, 'usage' | 'storage'>;

/** Tables whose rows are removed with their owner, and the column with its id. */
export const OWNERS = FEATURE_OWNERS satisfies Partial<Record<TableName, string>>;
export type OwnedTable = keyof typeof OWNERS;
