import { expect, test } from '@jest/globals';
import { closedText } from '../../../../shared/eventlog/encryption/closedText.ts';
import {
  commitText,
  createTextCloser,
} from '../../../../shared/eventlog/encryption/protectedText.ts';
import { createTurnTokenizer } from '../../../../shared/search/turnTokens.ts';
import { positionOf } from '../../../support/builders/history.ts';
import { memoryKeys } from '../../../support/fakes/memoryKeys.ts';

test('the thousands of tokens of a long turn are computed in steps', async () => {
  const { keys } = memoryKeys();
  const committed = commitText(Array.from({ length: 2_000 }, (_, n) => `w${n}word${n}`).join(' '));
  const close = createTextCloser(await keys.issueKey(), 'session-session_1');
  const tokens = createTurnTokenizer(keys)({
    session_id: 'session_1',
    account_id: 'acct_1',
    turn: 1,
    input: closedText(close(committed), committed.sha256),
    output: null,
    end_position: positionOf(3),
    revision: 2,
  });
  let steps = 0;
  const counting = setInterval(() => (steps += 1));
  expect((await tokens)!.length).toBeGreaterThan(5_000);
  clearInterval(counting);
  expect(steps).toBeGreaterThan(5);
});
