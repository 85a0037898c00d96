import { LIMITS } from '../limits.ts';
import type { SqlDatabase } from '../readModels/sqlDatabase.ts';
import type { IndexProgress } from './turnIndex.ts';

/** Queries of the word index's progress: a part of the read models port. */
export interface IndexQueries {
  /** Every search that waits calls it often. */
  indexProgress(): Promise<IndexProgress>;
  /** Ended turns that are not indexed yet, at most LIMITS.search.countedTurns. */
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
