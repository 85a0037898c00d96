import { expect, test } from '@jest/globals';
import { formatEncryptedText } from '../../../../../shared/eventlog/encryption/encryptedText.ts';
import {
  commitText,
  createTextEncrypter,
} from '../../../../../shared/eventlog/encryption/protectedText.ts';
import {
  createWordRows,
  expectedWordRows,
} from '../../../../../shared/readModels/integrity/wordRows.ts';
import type { AnyRow } from '../../../../../shared/readModels/integrity/rowReader.ts';
import type { EndedTurn } from '../../../../../shared/search/turnIndex.ts';
import { positionOf } from '../../../../support/builders/history.ts';
import { memoryKeys } from '../../../../support/fakes/memoryKeys.ts';

const turnOf = (turn: number, input: string): EndedTurn => ({
  session_id: 'session_1',
  account_id: 'acct_1',
  turn,
  input,
  output: null,
  end_position: positionOf(turn),
  revision: 2 * turn,
});
const turns = [turnOf(1, 'one'), turnOf(2, '!'), turnOf(3, 'three')];
const { keys } = memoryKeys();
const rowOf = createWordRows(keys);

test('turns have rows up to the one that the index has come to, with words or without', async () => {
  const [one, none, three] = await Promise.all(turns.map(rowOf));
  expect(one).toEqual({
    session_id: 'session_1',
    turn: 1,
    words: expect.stringMatching(/^[a-z]{8}( [a-z]{8})*$/),
    revision: 2,
  });
  expect(none).toEqual({ session_id: 'session_1', turn: 2, words: '', revision: 4 });
  const expected = (found: AnyRow[], indexed?: number) =>
    expectedWordRows(keys, turns, {
      found,
      indexed: indexed === undefined ? undefined : positionOf(indexed),
    });
  expect(await expected([])).toEqual([]);
  expect(await expected([], 1)).toEqual([one]);
  expect(await expected([], 3)).toEqual([one, none, three]);
  // A turn may be indexed before its turn comes.
  expect(await expected([{ ...(three as AnyRow), words: 'forged' }], 1)).toEqual([one, three]);
});

test('where the words are unknown, the row that is there is expected, or none', async () => {
  const committed = commitText('one');
  const close = createTextEncrypter(await memoryKeys().keys.issueKey(), 'session-session_1');
  const closed = { ...turns[0]!, input: formatEncryptedText(close(committed), committed.sha256) };
  const isErased = { ...keys, isErased: async () => true };
  expect(await rowOf(closed)).toBe('unknown');
  expect(await createWordRows(isErased)(turns[1]!)).toBe('unknown');
  const found = [{ session_id: 'session_1', turn: 1, words: 'aaaaaaaa', revision: 2 }];
  const indexed = positionOf(3);
  expect(await expectedWordRows(keys, [closed], { found, indexed })).toEqual(found);
  expect(await expectedWordRows(keys, [closed], { found: [], indexed })).toEqual([]);
});
