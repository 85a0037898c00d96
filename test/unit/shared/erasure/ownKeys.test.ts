import { describe, expect, test } from '@jest/globals';
import { createOwnKeys } from '../../../../shared/erasure/ownKeys.ts';
import type { TextKey } from '../../../../shared/eventlog/encryption/protectedText.ts';
import { wordsKeyId } from '../../../../shared/search/wordTokens.ts';
import { memoryKeys } from '../../../support/fakes/memoryKeys.ts';
import { masterKeysOf, newTextKey, seal } from '../../../support/stores/textKeys.ts';

const STREAM = 'session-session_1';

const eventWith = (...texts: { sha256: string; box: string }[]) => ({
  data: JSON.stringify({ texts }),
});
/** A ciphertext of one key that names another one. */
const naming = ({ id }: TextKey, box: { sha256: string; box: string }) => ({
  ...box,
  box: `${id}${box.box.slice(16)}`,
});

describe('of the keys that the ciphertexts of a stream name', () => {
  test('those that decrypt one of its texts are its own', async () => {
    const { keys } = memoryKeys();
    const key = await keys.issueKey();
    const found = createOwnKeys(keys, STREAM);
    await found.add([eventWith(seal('a', key, STREAM))]);
    expect([[...found.own], [...found.live]]).toEqual([[key.id], [key.id]]);
  });

  test('one damaged ciphertext does not hide a key that decrypts a later one', async () => {
    const { keys } = memoryKeys();
    const key = await keys.issueKey();
    const text = seal('a', key, STREAM);
    const found = createOwnKeys(keys, STREAM);
    await found.add([eventWith({ ...text, box: text.box.slice(0, -4) + 'AAAA' })]);
    expect([...found.doubtful.keys()]).toEqual([key.id]);
    await found.add([eventWith(text)]);
    expect([[...found.own], found.doubtful.size]).toEqual([[key.id], 0]);
  });

  test('another stream’s key is doubtful, whether the ciphertext is its own or only names it', async () => {
    const { keys } = memoryKeys();
    const [victim, own] = [await keys.issueKey(), await keys.issueKey()];
    const found = createOwnKeys(keys, STREAM);
    await found.add([
      eventWith(seal('copied', victim, 'session-victim')),
      eventWith(naming(victim, seal('renamed', own, STREAM))),
    ]);
    expect([...found.own]).toEqual([]);
    expect([...found.doubtful]).toEqual([[victim.id, 'it decrypts no text of the stream']]);
  });

  test('those that were lost are its own, those whose master key is not there are doubtful', async () => {
    const { keys, kept } = memoryKeys();
    const lost = newTextKey();
    const locked = newTextKey();
    kept.set(locked.id, masterKeysOf().wrap(locked));
    const found = createOwnKeys(keys, STREAM);
    await found.add([eventWith(seal('a', lost, STREAM), seal('b', locked, STREAM))]);
    expect([[...found.own], [...found.lost], [...found.live]]).toEqual([[lost.id], [lost.id], []]);
    expect([...found.doubtful]).toEqual([[locked.id, 'its master key is unavailable']]);
  });

  test('an account also has the key of its words, which no ciphertext names', async () => {
    const { keys } = memoryKeys();
    await keys.ensureKey(wordsKeyId('acct_1'));
    const found = createOwnKeys(keys, 'account-acct_1');
    await found.add([eventWith()]);
    expect([...found.live]).toEqual([wordsKeyId('acct_1')]);
  });
});
