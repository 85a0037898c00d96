import { beforeEach, expect, test } from '@jest/globals';
import { TurnlogError } from '../../../../shared/lib/errors/turnlogError.ts';
import { createConflictLimit } from '../../../../shared/eventlog/conflictLimit.ts';
import { createDamagedStreams } from '../../../../shared/eventlog/reading/damagedStreams.ts';
import type { StreamSource } from '../../../../shared/eventlog/reading/reportDamage.ts';
import { skipPauses } from '../../../support/fakes/jumpingClock.ts';
import { memoryKeys } from '../../../support/fakes/memoryKeys.ts';

skipPauses();

const STREAM = 'session-1';
let source: StreamSource;
beforeEach(() => {
  source = {
    store: { readStream: () => Promise.resolve([]), keys: memoryKeys().keys },
    damaged: createDamagedStreams(() => undefined),
  };
});

interface Lost {
  conflicts: number;
  ms: number;
  error: unknown;
}

/** Meets conflicts until that is one too many. */
async function meet(
  bounds: Parameters<typeof createConflictLimit>[2],
  revisionOf: (conflict: number) => number,
): Promise<Lost> {
  const began = performance.now();
  const limit = createConflictLimit(source, STREAM, bounds);
  for (let conflicts = 1; ; conflicts += 1) {
    try {
      await limit.recordConflict(revisionOf(conflicts));
    } catch (error) {
      return { conflicts, ms: performance.now() - began, error };
    }
  }
}

const stays = (): number => 4;
const moves = (conflict: number): number => conflict;

test('a stream that refuses what fits it is damaged, but not before five seconds of growing pauses', async () => {
  const { conflicts, ms, error } = await meet({}, stays);
  expect(error).toMatchObject({ code: 'stream_damaged' });
  expect(source.damaged.has(STREAM)).toBe(true);
  expect([ms > 4_900, ms < 7_000, conflicts < 40]).toEqual([true, true, true]);
});

test('a stream that is known to be stuck is said to be so within a second', async () => {
  source.damaged.record({
    stream: STREAM,
    reason: 'x',
    revision: 5,
    first_revision: 0,
    last_revision: 4,
  });
  const { ms, error } = await meet({}, stays);
  expect([(error as TurnlogError).code, ms < 1_000]).toEqual(['stream_damaged', true]);
});

test('a stream that moves all the time is given up after ten seconds, and is not damaged', async () => {
  const { conflicts, ms, error } = await meet({}, moves);
  expect(error).toMatchObject({ code: 'store_unavailable', retriable: true });
  expect([ms > 9_000, ms < 14_000, conflicts < 60, source.damaged.list()]).toEqual([
    true,
    true,
    true,
    [],
  ]);
});

test('a loop is ended in its own time, with its own words', async () => {
  const busy = new TurnlogError('session_busy', 'Busy.');
  const bounds = { until: performance.now() + 300, limitError: () => busy };
  const { ms, error } = await meet(bounds, moves);
  expect([error, ms < 2_000]).toEqual([busy, true]);
});

test('a pause ends when it is told to', async () => {
  const reason = new Error('stopped');
  expect((await meet({ signal: AbortSignal.abort(reason) }, stays)).error).toBe(reason);
});
