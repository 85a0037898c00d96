import { describe, expect, test } from '@jest/globals';
import { createReplayThrottle } from '../../../../../services/followers/replays/throttle.ts';
import { LIMITS } from '../../../../../shared/limits.ts';
import { skipPauses } from '../../../../support/fakes/jumpingClock.ts';

skipPauses();

const { turnPauseMs, quietMs } = LIMITS.replays;

/** The runs of a process: those of clients, which the test sets, and the turns that are replayed. */
function aProcess() {
  const runs = { clients: 0, waiting: 0, replayed: 0 };
  const pace = createReplayThrottle({
    activeCount: () => runs.clients + runs.replayed,
    waitingCount: () => runs.waiting,
  });
  /** Milliseconds in which so many turns have begun and ended, one after the other. */
  async function turns(count: number): Promise<number> {
    const begun = performance.now();
    for (let turn = 0; turn < count; turn += 1) {
      const ended = await pace.begin(new AbortController().signal);
      runs.replayed += 1;
      await Promise.resolve();
      runs.replayed -= 1;
      ended();
    }
    return performance.now() - begun;
  }
  return { runs, pace, turns };
}

describe('the pace of replays', () => {
  test('without runs of clients, turns begin as fast as they can, also beside each other', async () => {
    const { runs, pace } = aProcess();
    const begun = performance.now();
    for (let turn = 0; turn < 100; turn += 1) {
      await pace.begin(new AbortController().signal);
      runs.replayed += 1;
    }
    expect(performance.now() - begun).toBeLessThan(100 * turnPauseMs);
  });

  test.each(['clients', 'waiting'] as const)(
    'beside runs of clients (%s) one turn begins in so long a time, and one does at any rate',
    async (where) => {
      const { runs, turns } = aProcess();
      runs[where] = 1;
      expect(await turns(5)).toBeGreaterThanOrEqual(4 * turnPauseMs);
    },
  );

  test('all that wait share one pace', async () => {
    const { runs, turns } = aProcess();
    runs.clients = 1;
    const begun = performance.now();
    await Promise.all([turns(2), turns(2), turns(2)]);
    expect(performance.now() - begun).toBeGreaterThanOrEqual(5 * turnPauseMs);
  });

  test('a client that pauses between its runs is given way to as well', async () => {
    const { runs, turns } = aProcess();
    runs.clients = 1;
    await turns(1);
    runs.clients = 0;
    expect(await turns(5)).toBeGreaterThanOrEqual(5 * turnPauseMs);
  });

  test('when clients have had no run for a while, turns begin as fast as they can again', async () => {
    const { runs, turns } = aProcess();
    runs.clients = 1;
    await turns(1);
    runs.clients = 0;
    const count = Math.ceil((2 * quietMs) / turnPauseMs);
    expect(await turns(count)).toBeLessThan(count * turnPauseMs);
  });

  test('what ends a replay ends its wait', async () => {
    const { runs, pace, turns } = aProcess();
    runs.clients = 1;
    await turns(1);
    const stop = new AbortController();
    const waiting = pace.begin(stop.signal);
    stop.abort(new Error('cancelled'));
    await expect(waiting).rejects.toThrow('cancelled');
  });
});
