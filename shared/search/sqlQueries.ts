import { LIMITS } from '../limits.ts';
import type { SqlDatabase } from '../readModels/sqlDatabase.ts';
import type { IndexProgress } from './turnIndex.ts';

/** Queries for the progress of the word index, part of the read models port. */
export interface IndexQueries {
  /** Polled by every waiting search. */
  indexProgress(): Promise<IndexProgress>;
  /** Number of ended turns not yet indexed, at most LIMITS.search.countedTurns. */
  countUnindexed(): Promise<number>;
}

export function createIndexQueries({ generation, query }: SqlDatabase): IndexQueries {
  const progress = query<IndexProgress>(`SELECT
    (SELECT max(end_position) FROM {turns} WHERE end_position IS NOT NULL) AS ended,
    (SELECT position FROM {indexed}) AS indexed, ${generation} AS generation`);
  const count = query<{ waiting: number }>(`SELECT count(*) AS waiting FROM (
    SELECT 1 FROM {turns} WHERE end_position > coalesce((SELECT position FROM {indexed}), '')
    LIMIT ${LIMITS.search.countedTurns}) AS picked`);
  return {
    indexProgress: async () => (await progress())[0]!,
    countUnindexed: async () => (await count())[0]!.waiting,
  };
}
