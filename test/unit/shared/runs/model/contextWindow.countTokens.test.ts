import { expect, test } from '@jest/globals';
import { wordsKeyId, createWordTokenizer } from '../../../../../shared/search/wordTokens.ts';
import { createTurnTokenizer } from '../../../../../shared/search/turnTokens.ts';
import { formatEncryptedText } from '../../../../../shared/eventlog/encryption/encryptedText.ts';
import {
  createTextEncrypter,
  commitText,
} from '../../../../../shared/eventlog/encryption/protectedText.ts';
import { positionOf } from '../../../../support/builders/history.ts';
import { memoryKeys } from '../../../../support/fakes/memoryKeys.ts';

const tokenOf = async (
  keys: ReturnType<typeof memoryKeys>['keys'],
  account: string,
  word: string,
) => (await createWordTokenizer(keys, account))!(word);

test('tokens are the same in every process, and others for another account or key store', async () => {
  const { keys, open } = memoryKeys();
  const token = await tokenOf(keys, 'acct_1', 'word');
  expect(token).toMatch(/^[a-z]{8}$/);
  expect(await tokenOf(open(), 'acct_1', 'word')).toBe(token);
  expect(await tokenOf(keys, 'acct_1', 'words')).not.toBe(token);
  expect(await tokenOf(keys, 'acct_2', 'word')).not.toBe(token);
  expect(await tokenOf(memoryKeys().keys, 'acct_1', 'word')).not.toBe(token);
});

test('a key is made once, whoever needs it at the same time', async () => {
  const { open } = memoryKeys();
  const tokens = await Promise.all([1, 2, 3].map(() => tokenOf(open(), 'acct_1', 'word')));
  expect(new Set(tokens).size).toBe(1);
});

test('there are none once the key of the account is destroyed', async () => {
  const { keys, open } = memoryKeys();
  await tokenOf(keys, 'acct_1', 'word');
  await keys.endErasure('account-acct_1', [wordsKeyId('acct_1')]);
  expect(await createWordTokenizer(keys, 'acct_1')).toBeUndefined();
  expect(await createWordTokenizer(open(), 'acct_1')).toBeUndefined();
});

test('of a turn whose key was lost or whose text was changed they are undefined, and of an erased one there are none', async () => {
  const { keys, kept } = memoryKeys();
  const key = await keys.issueKey();
  const close = (text: string): string => {
    const committed = commitText(text);
    return formatEncryptedText(
      createTextEncrypter(key, 'session-session_1')(committed),
      committed.sha256,
    );
  };
  const turn = {
    session_id: 'session_1',
    account_id: 'acct_1',
    turn: 1,
    input: close('a word'),
    output: close('Word!'),
    end_position: positionOf(3),
    revision: 2,
  };
  const expected = await Promise.all(
    ['a', 'word', 'wor*', 'word*'].map((word) => tokenOf(keys, 'acct_1', word)),
  );
  expect(await createTurnTokenizer(keys)(turn)).toEqual(expected);
  expect(await createTurnTokenizer(keys)({ ...turn, output: null })).toEqual(expected);
  expect(await createTurnTokenizer(keys)({ ...turn, session_id: 'session_2' })).toBeUndefined();
  const { open } = memoryKeys();
  expect(await createTurnTokenizer(open())(turn)).toBeUndefined();
  await keys.endErasure('session-session_1', [key.id]);
  expect(kept.get(key.id)).toBe('destroyed');
  expect(await createTurnTokenizer(keys)(turn)).toEqual([]);
});

test('of a turn of an erased account there are none', async () => {
  const { keys } = memoryKeys();
  await tokenOf(keys, 'acct_1', 'word');
  await keys.endErasure('account-acct_1', [wordsKeyId('acct_1')]);
  const ended = { session_id: 'session_1', turn: 1, output: null, revision: 2 };
  const turn = { ...ended, account_id: 'acct_1', input: 'word', end_position: positionOf(3) };
  expect(await createTurnTokenizer(keys)(turn)).toEqual([]);
});
