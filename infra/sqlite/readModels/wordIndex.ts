import type { DatabaseSync } from 'node:sqlite';
import { LIMITS } from '../../../shared/limits.ts';
import {
  earliestChange,
  type EndedTurn,
  type RemovalProgress,
  type NextTurn,
  type TurnsOfAccounts,
  type TurnWords,
} from '../../../shared/search/turnIndex.ts';
import { bucketOf, firstRowid, lastRowid } from './buckets.ts';
import { canDeleteWords, LIVE_BYTES_BEFORE } from './erasure/deletedWords.ts';

const {
  turnsAtOnce,
  charactersAtOnce,
  pagesAtOnce,
  accountsAtOnce,
  turnsOfAccount,
  changedSessions,
} = LIMITS.search;

const BEHIND = "end_position > coalesce((SELECT position FROM indexed), '')";
const COLUMNS = 'session_id, account_id, turn, input, output, end_position, turns.revision';

const UNINDEXED = `SELECT ${COLUMNS}, sessions.status = 'erased' OR EXISTS (SELECT 1 FROM turn_words
    WHERE turn_words.session_id = turns.session_id AND turn_words.turn = turns.turn) AS is_indexed
  FROM turns JOIN sessions USING (session_id) WHERE ${BEHIND} ORDER BY end_position LIMIT ${turnsAtOnce}`;

const UNINDEXED_FROM = `SELECT ended_at FROM turns WHERE ${BEHIND} ORDER BY end_position LIMIT 1`;
/** Sessions by account and time, without the erased ones. */
const LIVE_SESSIONS = 'sessions INDEXED BY sessions_10';
/** Skips from account to account in the index, whatever number of sessions they have. */
const NEXT_ACCOUNT = `SELECT min(account_id) AS next FROM ${LIVE_SESSIONS}
  WHERE account_id > ? AND status <> 'erased'`;
/**
 * The next turns of sessions that have changed since ?2. The order of the key, which this is read in, is that
 * in which the turns of a session have to be indexed. A running turn is excluded by its status, because
 * SQLite reads its texts, which may be long, before it reaches `end_position`.
 */
const OF_ACCOUNT = `SELECT ${COLUMNS} FROM (SELECT session_id, account_id FROM ${LIVE_SESSIONS}
    WHERE account_id = ?1 AND updated_at >= ?2 AND status <> 'erased'
    ORDER BY updated_at DESC LIMIT ${changedSessions}) AS recent CROSS JOIN turns USING (session_id)
  WHERE turn > coalesce((SELECT max(turn) FROM turn_words WHERE turn_words.session_id = recent.session_id), 0)
    AND turns.status <> 'running' AND ${BEHIND} LIMIT ${turnsOfAccount}`;

/**
 * Inserts turns at the next free rowids of their buckets, except those of full buckets and erased turns. In
 * one statement and in the order of rowids: at the start of each statement with a trigger, and at each lower
 * rowid, FTS5 writes another segment, which is merged with others later.
 */
const INSERT_WORDS = `WITH given AS (
    SELECT value ->> 0 AS session_id, value ->> 1 AS turn, value ->> 2 AS words, value ->> 3 AS revision,
      value ->> 4 AS bucket, key AS nth FROM json_each(?)
  ), placed AS (
    SELECT *, row_number() OVER (PARTITION BY bucket ORDER BY nth) - 1
      + coalesce((SELECT rowid + 1 FROM turn_words WHERE rowid BETWEEN ${firstRowid('bucket')} AND ${lastRowid('bucket')} ORDER BY rowid DESC LIMIT 1), ${firstRowid('bucket')}) AS place
    FROM given WHERE EXISTS (SELECT 1 FROM turns JOIN sessions USING (session_id)
      WHERE session_id = given.session_id AND turn = given.turn AND sessions.status <> 'erased')
  )
  INSERT OR IGNORE INTO turn_words (rowid, session_id, turn, words, revision)
  SELECT place, session_id, turn, words, revision FROM placed WHERE place <= ${lastRowid('bucket')} ORDER BY place`;

/** Never moves back: a rebuild starts in another file. */
const ADVANCE = `INSERT INTO indexed (only_row, position) VALUES (1, ?)
  ON CONFLICT DO UPDATE SET position = excluded.position WHERE excluded.position > position`;

/**
 * Whether rows of erased turns remain, or the index still contains words of turns that are marked as
 * deleted. FTS5 keeps such marks in rows of `word_index_data` from this id on, and deletes them together
 * with their segment.
 */
export const HOLDS_ERASED = `SELECT EXISTS (SELECT 1 FROM pending_removals)
  OR EXISTS (SELECT 1 FROM word_index_data WHERE id >= 65536 << 37) AS holds`;

/** The record in which FTS5 lists the segments of the index. */
const STRUCTURE = 'SELECT block FROM word_index_data WHERE id = 10';

const DELETED_BYTES =
  'SELECT coalesce(sum(bytes), 0) AS bytes FROM deleted_words WHERE origin BETWEEN ? AND ?';

/** From this number of segments on, FTS5 merges some at a commit; 0 turns that off. */
const AUTOMERGE =
  "INSERT INTO word_index(word_index, rank) VALUES ('automerge', CAST(? AS INTEGER))";
const SEGMENTS = 4;

/** Writes this many pages of merged segments; a negative number merges all segments into one. */
const MERGE = "INSERT INTO word_index(word_index, rank) VALUES ('merge', ?)";
const CHANGES = 'SELECT total_changes() AS changes';
/** Fewer changes mean that there was nothing to merge. */
const CHANGES_OF_MERGE = 2;

/** Looks at accounts for this long at once: the projection waits, and each may take two milliseconds. */
const LOOK_MS = 5;

const charactersOf = ({ input, output }: EndedTurn): number => input.length + (output?.length ?? 0);

/** Fills `turn_words` and, by its triggers, the word index. Its methods throw SQLite's errors. */
export function createWordIndex(database: DatabaseSync) {
  const prepare = () => ({
    unindexed: database.prepare(UNINDEXED),
    unindexedFrom: database.prepare(UNINDEXED_FROM),
    nextAccount: database.prepare(NEXT_ACCOUNT),
    ofAccount: database.prepare(OF_ACCOUNT),
    index: database.prepare(INSERT_WORDS),
    advance: database.prepare(ADVANCE),
    holdsErased: database.prepare(HOLDS_ERASED),
    merge: database.prepare(MERGE),
    changes: database.prepare(CHANGES),
    structure: database.prepare(STRUCTURE),
    deletedBytes: database.prepare(DELETED_BYTES),
    liveBytesBefore: database.prepare(LIVE_BYTES_BEFORE),
    resetDeleted: database.prepare('DELETE FROM deleted_words'),
    automerge: database.prepare(AUTOMERGE),
  });
  let prepared: ReturnType<typeof prepare> | undefined;
  /** Prepared with the first use: a rebuild uses none of them. */
  const statements = () => (prepared ??= prepare());
  const holdsErased = (): boolean => statements().holdsErased.get()!['holds'] === 1;
  /** False if there was nothing to merge. */
  function merge(pages: number): boolean {
    const { merge: merges, changes } = statements();
    const before = Number(changes.get()!['changes']);
    merges.run(pages);
    return Number(changes.get()!['changes']) - before >= CHANGES_OF_MERGE;
  }

  return {
    /**
     * Turn it off before words are deleted, and on again after the transaction: FTS5 would otherwise merge
     * at least one page per deleted turn in that transaction.
     */
    mergeAtCommit(merges: boolean): void {
      statements().automerge.run(merges ? SEGMENTS : 0);
    },
    /**
     * Inside a transaction. False if words are to be deleted later, after `forget` has removed more of the
     * previous ones.
     */
    canDelete(): boolean {
      const { structure, deletedBytes, liveBytesBefore, resetDeleted } = statements();
      const record = structure.get()?.['block'] as Uint8Array | undefined;
      const liveBefore = (origin: number): number =>
        liveBytesBefore.get({ origin })!['bytes'] as number;
      return canDeleteWords(record ?? new Uint8Array(), {
        bytesOf: (first, last) => deletedBytes.get(first, last)!['bytes'] as number,
        liveBytesOf: (first, last) => liveBefore(last + 1) - liveBefore(first),
        reset: () => void resetDeleted.run(),
      });
    },
    unindexed(): NextTurn[] {
      const turns: NextTurn[] = [];
      let characters = 0;
      for (const row of statements().unindexed.iterate()) {
        const turn = row as unknown as EndedTurn;
        characters += charactersOf(turn);
        if (turns.length > 0 && characters > charactersAtOnce) break;
        turns.push({ ...turn, is_indexed: row['is_indexed'] === 1 });
      }
      return turns;
    },
    unindexedOfAccounts(after: string): TurnsOfAccounts {
      const { unindexedFrom, nextAccount, ofAccount } = statements();
      const from = unindexedFrom.get()?.['ended_at'] as string | undefined;
      const turns: EndedTurn[] = [];
      let characters = 0;
      let last: string | undefined = after;
      if (from === undefined) return { turns, last: undefined };
      const until = performance.now() + LOOK_MS;
      for (let looked = 0; looked < accountsAtOnce && performance.now() < until; looked += 1) {
        last = (nextAccount.get(last)!['next'] as string | null) ?? undefined;
        if (last === undefined) break;
        for (const row of ofAccount.iterate(last, earliestChange(from))) {
          turns.push(row as unknown as EndedTurn);
          characters += charactersOf(turns.at(-1)!);
          if (characters > charactersAtOnce) return { turns, last };
        }
      }
      return { turns, last };
    },
    /** Inside a transaction. */
    index(turns: readonly TurnWords[], outOfOrder = false): void {
      const { index, advance } = statements();
      const rows = turns.map(({ session_id, turn, tokens, revision }) => [
        session_id,
        turn,
        tokens.join(' '),
        revision,
        bucketOf(session_id),
      ]);
      index.run(JSON.stringify(rows));
      const last = turns.at(-1)?.end_position;
      if (last && !outOfOrder) advance.run(last);
    },
    /** True while rows or words of erased turns remain. */
    holdsErased,
    /**
     * Runs inside a transaction, while there are such words. A merge copies the remaining words of its
     * segments to a new segment, and SQLite overwrites the old ones. It continues a merge that was
     * begun, also by an earlier process.
     */
    forget(begin: boolean): RemovalProgress {
      const continued = merge(pagesAtOnce);
      if (!continued && !begin) return 'nothing';
      if (!continued) merge(-pagesAtOnce);
      if (!holdsErased()) return 'all';
      return continued ? 'some' : 'begun';
    },
  };
}
