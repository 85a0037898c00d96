import type { DatabaseSync } from 'node:sqlite';
import { LIMITS } from '../../../shared/limits.ts';
import type { EndedTurn, TurnWords } from '../../../shared/search/turnIndex.ts';
import { bucketOf, firstPlace, lastPlace } from './buckets.ts';

const { turnsAtOnce, charactersAtOnce } = LIMITS.search;

const UNINDEXED = `SELECT session_id, account_id, turn, input, output, end_position, turns.revision
  FROM turns JOIN sessions USING (session_id)
  WHERE end_position > coalesce((SELECT position FROM indexed), '') ORDER BY end_position LIMIT ${turnsAtOnce}`;

/** In the next free place of the bucket ?5, unless that is full, or the turn is gone. */
const INDEX = `INSERT OR IGNORE INTO turn_words (rowid, session_id, turn, words, revision)
  SELECT place, ?1, ?2, ?3, ?4 FROM (
    SELECT coalesce((SELECT rowid + 1 FROM turn_words WHERE rowid BETWEEN ${firstPlace('?5')} AND ${lastPlace('?5')} ORDER BY rowid DESC LIMIT 1), ${firstPlace('?5')}) AS place
  ) WHERE place <= ${lastPlace('?5')} AND EXISTS (SELECT 1 FROM turns WHERE session_id = ?1 AND turn = ?2)`;

/** A later position only: a rebuild begins again in another file. */
const GO_ON = `INSERT INTO indexed (only_row, position) VALUES (1, ?)
  ON CONFLICT DO UPDATE SET position = excluded.position WHERE excluded.position > position`;

/** What fills `turn_words`, and with it the index. Its methods throw what SQLite throws. */
export function createWordIndex(database: DatabaseSync) {
  const prepare = () => ({
    unindexed: database.prepare(UNINDEXED),
    index: database.prepare(INDEX),
    goOn: database.prepare(GO_ON),
  });
  let prepared: ReturnType<typeof prepare> | undefined;
  /** With the first use: a rebuild uses none of them. */
  const statements = () => (prepared ??= prepare());
  return {
    unindexed(): EndedTurn[] {
      const turns: EndedTurn[] = [];
      let characters = 0;
      for (const found of statements().unindexed.iterate()) {
        const turn = found as unknown as EndedTurn;
        characters += turn.input.length + (turn.output?.length ?? 0);
        if (turns.length > 0 && characters > charactersAtOnce) break;
        turns.push(turn);
      }
      return turns;
    },
    /** Inside a transaction. */
    index(turns: readonly TurnWords[]): void {
      const placed = turns
        .map((turn) => ({ ...turn, bucket: bucketOf(turn.session_id) }))
        // FTS5 writes a piece of its own each time that a rowid is lower than the one before.
        .toSorted((a, b) => a.bucket - b.bucket);
      const { index, goOn } = statements();
      for (const { session_id, turn, tokens, revision, bucket } of placed)
        if (tokens.length > 0) index.run(session_id, turn, tokens.join(' '), revision, bucket);
      const last = turns.at(-1)?.end_position;
      if (last) goOn.run(last);
    },
  };
}
