import { expect, test } from '@jest/globals';
import { formatEncryptedText } from '../../../../shared/eventlog/encryption/encryptedText.ts';
import {
  commitText,
  createTextEncrypter,
} from '../../../../shared/eventlog/encryption/protectedText.ts';
import { createTurnTokenizer } from '../../../../shared/search/turnTokens.ts';
import { positionOf } from '../../../support/builders/history.ts';
import { memoryKeys } from '../../../support/fakes/memoryKeys.ts';

/** Computes the tokens of a turn, and counts the turns of the event loop meanwhile. */
async function tokensOf(input: string) {
  const { keys } = memoryKeys();
  const committed = commitText(input);
  const close = createTextEncrypter(await keys.issueKey(), 'session-session_1');
  const tokens = createTurnTokenizer(keys)({
    session_id: 'session_1',
    account_id: 'acct_1',
    turn: 1,
    input: formatEncryptedText(close(committed), committed.sha256),
    output: null,
    end_position: positionOf(3),
    revision: 2,
  });
  let turns = 0;
  let isCounting = true;
  const count = (): void => {
    turns += 1;
    if (isCounting) setImmediate(count);
  };
  setImmediate(count);
  const { length } = (await tokens)!;
  isCounting = false;
  return { length, turns };
}

test('the thousands of tokens of a long turn are computed in steps', async () => {
  const words = Array.from({ length: 2_000 }, (_, n) => `w${n}word${n}`);
  const { length, turns } = await tokensOf(words.join(' '));
  expect(length).toBeGreaterThan(5_000);
  expect(turns).toBeGreaterThan(20);
});

test('the words of a long text are extracted in steps, however few they are', async () => {
  const { length, turns } = await tokensOf('\u3316'.repeat(65_536));
  expect(length).toBeLessThan(50);
  expect(turns).toBeGreaterThan(100);
});
