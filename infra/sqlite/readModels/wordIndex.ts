import type { DatabaseSync } from 'node:sqlite';
import { LIMITS } from '../../../shared/limits.ts';
import type { EndedTurn, Forgotten, TurnWords } from '../../../shared/search/turnIndex.ts';
import { bucketOf, firstPlace, lastPlace } from './buckets.ts';

const { turnsAtOnce, charactersAtOnce, pagesAtOnce } = LIMITS.search;

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

/**
 * Whether turns are marked as deleted whose words still stand in the index. FTS5 keeps such marks in
 * rows of `word_index_data` from this id on, and deletes them with the segment that they are of.
 */
export const HOLDS_ERASED =
  'SELECT EXISTS (SELECT 1 FROM word_index_data WHERE id >= 65536 << 37) AS holds';

/** From how many segments on FTS5 merges some by itself at a commit; 0: never. */
const AUTOMERGE =
  "INSERT INTO word_index(word_index, rank) VALUES ('automerge', CAST(? AS INTEGER))";
const SEGMENTS = 4;

/** Writes as many pages of new segments, a negative number of all segments together. */
const MERGE = "INSERT INTO word_index(word_index, rank) VALUES ('merge', ?)";
const CHANGES = 'SELECT total_changes() AS changes';
/** FTS5 says by fewer that there was nothing to merge. */
const CHANGES_OF_MERGE = 2;

/** What fills `turn_words`, and with it the index. Its methods throw what SQLite throws. */
export function createWordIndex(database: DatabaseSync) {
  const prepare = () => ({
    unindexed: database.prepare(UNINDEXED),
    index: database.prepare(INDEX),
    goOn: database.prepare(GO_ON),
    holdsErased: database.prepare(HOLDS_ERASED),
    merge: database.prepare(MERGE),
    changes: database.prepare(CHANGES),
    automerge: database.prepare(AUTOMERGE),
  });
  let prepared: ReturnType<typeof prepare> | undefined;
  /** With the first use: a rebuild uses none of them. */
  const statements = () => (prepared ??= prepare());
  const holdsErased = (): boolean => statements().holdsErased.get()!['holds'] === 1;
  /** False where there was nothing to merge. */
  function merge(pages: number): boolean {
    const { merge: merges, changes } = statements();
    const before = Number(changes.get()!['changes']);
    merges.run(pages);
    return Number(changes.get()!['changes']) - before >= CHANGES_OF_MERGE;
  }

  return {
    /**
     * Before words are deleted, and again after the transaction: FTS5 would merge as many pages and more
     * with it as there are turns.
     */
    mergeAtCommit(merges: boolean): void {
      statements().automerge.run(merges ? SEGMENTS : 0);
    },
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
    /**
     * Inside a transaction. A merge writes what is left of its segments into a new one, and SQLite
     * overwrites the old ones; it goes on with the one that was begun, whoever began it.
     */
    forget(begin: boolean): Forgotten {
      if (!holdsErased()) return 'nothing';
      const goesOn = merge(pagesAtOnce);
      if (!goesOn && !begin) return 'nothing';
      if (!goesOn) merge(-pagesAtOnce);
      if (!holdsErased()) return 'all';
      return goesOn ? 'some' : 'begun';
    },
  };
}
