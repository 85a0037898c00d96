import { expect, test } from '@jest/globals';
import {
  waitUntilTurnVisible,
  waitUntilVisible,
  type VisibilityContext,
} from '../../../../shared/commandHandling/context.ts';
import type { ReadModels } from '../../../../shared/ports/readModels.ts';
import { positionOf } from '../../../support/builders/history.ts';
import { recordingLogger } from '../../../support/stores/projections/projector.ts';

/** What happened to a write, in order. */
function contextOf(readModels: Partial<ReadModels>) {
  const seen: string[] = [];
  const context: VisibilityContext = {
    readModels: readModels as ReadModels,
    logger: recordingLogger().logger as unknown as VisibilityContext['logger'],
    visibilityWaitMs: 10,
    onVisibilityTimeout: () => void seen.push('late'),
    waitToResume: async () => void seen.push('resumed in its turn'),
  };
  return { context, seen };
}

test.each([
  [async () => true, ['resumed in its turn']],
  [async () => false, ['late', 'resumed in its turn']],
  [() => Promise.reject(new Error('away')), ['late', 'resumed in its turn']],
])(
  'a write that waited for the read models continues in its turn',
  async (untilShown, expected) => {
    const { context, seen } = contextOf({ untilShown });
    await waitUntilVisible(context, positionOf(1));
    expect(seen).toEqual(expected);
  },
);

test('a write that queries wait for does not wait itself', async () => {
  const { context, seen } = contextOf({ showLater: () => true });
  const write = { position: positionOf(1), account_id: 'acct_1', session_id: 'session_1' };
  await waitUntilTurnVisible(context, write);
  expect(seen).toEqual([]);
});
