import { jest } from '@jest/globals';

/**
 * The turns that the event loop takes while the work is done, each look at the time taking a
 * millisecond.
 */
export async function turnsDuring(work: () => Promise<unknown>): Promise<number> {
  let now = performance.now();
  const clock = jest.spyOn(performance, 'now').mockImplementation(() => (now += 1));
  let turns = 0;
  let isDone = false;
  const turn = (): void => {
    if (isDone) return;
    turns += 1;
    setImmediate(turn);
  };
  setImmediate(turn);
  try {
    await work();
    return turns;
  } finally {
    isDone = true;
    clock.mockRestore();
  }
}
