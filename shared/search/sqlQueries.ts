import { LIMITS } from '../limits.ts';
import type { Position } from '../ports/eventStore.ts';
import type { SqlDatabase } from '../readModels/sqlDatabase.ts';
import type { IndexProgress } from './turnIndex.ts';

/** Queries for the progress of the word index, part of the read models port. */
export interface IndexQueries {
  /** Polled by every waiting search. The ended turns of the account, if given, are visible first. */
  indexProgress(accountId?: string): Promise<IndexProgress>;
  /**
   * Whether the account has turns that are not indexed, among those that ended from a time on and up
   * to a position. True if too many of its sessions have changed since that time to tell.
   */
  hasUnindexed(accountId: string, from: string, upTo: Position): Promise<boolean>;
  /** Number of ended turns not yet indexed, at most LIMITS.search.countedTurns. */
  countUnindexed(): Promise<number>;
}

const BEHIND = "end_position > coalesce((SELECT position FROM {indexed}), '')";

const CHANGED = `FROM {sessions INDEXED BY sessions_10} WHERE account_id = ? AND updated_at >= ? AND status <> 'erased'
  ORDER BY updated_at DESC LIMIT ${LIMITS.search.changedSessions}`;

/**
 * A session with a turn that is not indexed. The last two turns are sufficient: the last one may still
 * run, and turns end in order. The last but one counts even if it ended later, because an earlier one
 * may be missing, too. The rows of indexed turns, which may be long, are not read, nor the texts of
 * running turns, which SQLite reads before it reaches `end_position`.
 */
const UNINDEXED_SESSION = `SELECT 1
  FROM (SELECT session_id, turns ${CHANGED}) AS recent CROSS JOIN (SELECT 0 AS n UNION ALL SELECT 1) AS back
  WHERE NOT EXISTS (SELECT 1 FROM {turn_words} WHERE turn_words.session_id = recent.session_id
      AND turn_words.turn = recent.turns - back.n)
    AND EXISTS (SELECT 1 FROM {turns} WHERE turns.session_id = recent.session_id
      AND turns.turn = recent.turns - back.n AND turns.status <> 'running' AND ${BEHIND} AND (back.n = 1 OR end_position <= ?))`;

/** One row or none. Counting is the cheaper part, and both read the same state. */
const IS_BEHIND = `SELECT 1 AS behind
  WHERE (SELECT count(*) FROM (SELECT 1 ${CHANGED}) AS changed) >= ${LIMITS.search.changedSessions}
    OR EXISTS (${UNINDEXED_SESSION})`;

export function createIndexQueries({ generation, query }: SqlDatabase): IndexQueries {
  const progress = query<IndexProgress>(`SELECT
    (SELECT max(end_position) FROM {turns} WHERE end_position IS NOT NULL) AS ended,
    (SELECT position FROM {indexed}) AS indexed,
    (SELECT ended_at FROM {turns} WHERE ${BEHIND} ORDER BY end_position LIMIT 1) AS unindexed_from,
    ${generation} AS generation`);
  const behind = query(IS_BEHIND);
  const count = query<{ waiting: number }>(`SELECT count(*) AS waiting FROM (
    SELECT 1 FROM {turns} WHERE ${BEHIND}
    LIMIT ${LIMITS.search.countedTurns}) AS picked`);
  return {
    indexProgress: async () => (await progress())[0]!,
    hasUnindexed: async (accountId, from, upTo) =>
      (await behind(accountId, from, accountId, from, upTo)).length > 0,
    countUnindexed: async () => (await count())[0]!.waiting,
  };
}
