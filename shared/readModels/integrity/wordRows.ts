/** The rows of the word index that turns have, made from the rows of turns. */
import { sessionStream } from '../../eventlog/streams.ts';
import type { Position } from '../../ports/eventStore.ts';
import type { EndedTurn } from '../../search/turnIndex.ts';
import { createTurnTokenizer, loadKeysOf, type IndexKeys } from '../../search/turnTokens.ts';
import { wordsKeyId } from '../../search/wordTokens.ts';
import type { Rows } from '../tables.ts';
import { compareKeys, keyOf, type AnyRow } from './rowReader.ts';

/** The keys with which words are computed again. */
export type WordKeys = Pick<IndexKeys, keyof IndexKeys & ('find' | 'isErased' | 'ensureKey')>;

type WordRow = Rows['turn_words'];

/** The row of a turn, or `unknown` where its keys are lost or destroyed. */
export type ExpectedWords = WordRow | 'unknown';

/** Returns a function that computes rows of turns. It caches keys and words, so discard it soon. */
export function createWordRows(keys: WordKeys): (turn: EndedTurn) => Promise<ExpectedWords> {
  const tokensOf = createTurnTokenizer(keys);
  return async (turn) => {
    const { session_id, account_id, revision } = turn;
    const tokens = await tokensOf(turn);
    if (!tokens) return 'unknown';
    const row = { session_id, turn: turn.turn, words: tokens.join(' '), revision };
    if (tokens.length > 0) return row;
    // An erasure destroys the keys before the projector removes the rows.
    const isErased =
      (await keys.isErased(sessionStream(session_id))) ||
      !(await keys.ensureKey(wordsKeyId(account_id)));
    return isErased ? 'unknown' : row;
  };
}

/**
 * The rows that the index has for these turns, both in the order of the keys. `found` decides only where
 * the row is unknown, or the index has not come to the turn yet: turns that ended up to `indexed` have
 * their rows. Throws `store_unavailable`.
 */
export async function expectedWordRows(
  keys: WordKeys,
  turns: readonly EndedTurn[],
  { found, indexed }: { found: readonly AnyRow[]; indexed: Position | undefined },
): Promise<AnyRow[]> {
  await loadKeysOf(keys, turns);
  const rowOf = createWordRows(keys);
  const rows: AnyRow[] = [];
  let at = 0;
  for (const turn of turns) {
    const key = [turn.session_id, turn.turn];
    while (at < found.length && compareKeys(keyOf('turn_words', found[at]!), key) < 0) at += 1;
    const candidate = found[at];
    const stored =
      candidate && compareKeys(keyOf('turn_words', candidate), key) === 0 ? candidate : undefined;
    const row = await rowOf(turn);
    if (row === 'unknown') {
      if (stored) rows.push(stored);
    } else if (stored || turn.end_position! <= (indexed ?? '')) rows.push(row);
  }
  return rows;
}
