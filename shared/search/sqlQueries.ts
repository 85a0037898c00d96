import { LIMITS } from '../limits.ts';
import type { Position } from '../ports/eventStore.ts';
import type { SqlDatabase } from '../readModels/sqlDatabase.ts';
import type { IndexProgress } from './turnIndex.ts';

/** Queries for the progress of the word index, part of the read models port. */
export interface IndexQueries {
  /** Polled by every waiting search. */
  indexProgress(): Promise<IndexProgress>;
  /**
   * Whether the account has turns that are not indexed, among those that ended from a time on and up
   * to a position. True if too many of its sessions have changed since that time to tell.
   */
  hasUnindexed(accountId: string, from: string, upTo: Position): Promise<boolean>;
  /** Number of ended turns not yet indexed, at most LIMITS.search.countedTurns. */
  countUnindexed(): Promise<number>;
}

const BEHIND = "end_position > coalesce((SELECT position FROM {indexed}), '')";

/** The last two turns of a session tell: the last one may still run, and turns end in order. */
const HAS_UNINDEXED = `SELECT count(*) AS sessions, max(unindexed) AS unindexed FROM (
  SELECT CASE WHEN EXISTS (SELECT 1 FROM {turns} WHERE turns.session_id = recent.session_id
    AND turns.turn >= recent.turns - 1 AND ${BEHIND} AND end_position <= ?
    AND NOT EXISTS (SELECT 1 FROM {turn_words} WHERE turn_words.session_id = turns.session_id
      AND turn_words.turn = turns.turn)) THEN 1 ELSE 0 END AS unindexed
  FROM (SELECT session_id, turns FROM {sessions}
    WHERE account_id = ? AND updated_at >= ? AND status <> 'erased'
    ORDER BY updated_at DESC LIMIT ${LIMITS.search.changedSessions}) AS recent) AS looked_at`;

export function createIndexQueries({ generation, query }: SqlDatabase): IndexQueries {
  const progress = query<IndexProgress>(`SELECT
    (SELECT max(end_position) FROM {turns} WHERE end_position IS NOT NULL) AS ended,
    (SELECT position FROM {indexed}) AS indexed,
    (SELECT ended_at FROM {turns} WHERE ${BEHIND} ORDER BY end_position LIMIT 1) AS unindexed_from,
    ${generation} AS generation`);
  const unindexed = query<{ sessions: number; unindexed: number | null }>(HAS_UNINDEXED);
  const count = query<{ waiting: number }>(`SELECT count(*) AS waiting FROM (
    SELECT 1 FROM {turns} WHERE ${BEHIND}
    LIMIT ${LIMITS.search.countedTurns}) AS picked`);
  return {
    indexProgress: async () => (await progress())[0]!,
    async hasUnindexed(accountId, from, upTo) {
      const [found] = await unindexed(upTo, accountId, from);
      return found!.unindexed === 1 || found!.sessions >= LIMITS.search.changedSessions;
    },
    countUnindexed: async () => (await count())[0]!.waiting,
  };
}
