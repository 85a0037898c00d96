import { afterAll, beforeAll, jest } from '@jest/globals';

const { setTimeout: realSetTimeout } = globalThis;
/** Long enough for what the work does between two pauses, such as a read of a file. */
const LEFT_ALONE_MS = 1;

const leaveAlone = (): Promise<void> =>
  new Promise((resolve) => void realSetTimeout(resolve, LEFT_ALONE_MS));

/**
 * In the tests of the file, pauses take no time: while all wait, timers and `performance.now()` jump
 * to the end of the next pause. For tests of this thread, which wait for no other thread or process.
 * `Date` and timers of Node's own, such as those of `AbortSignal.timeout`, are as they are.
 */
export function skipPauses(): void {
  const over = new AbortController();
  let jumping: Promise<void>;

  async function jump(): Promise<void> {
    while (!over.signal.aborted) {
      await leaveAlone();
      if (!over.signal.aborted) jest.advanceTimersToNextTimer();
    }
  }

  beforeAll(() => {
    // A fraction would stay at the end of pauses: a timer of less than a millisecond moves no clock.
    const now = Math.ceil(performance.now());
    jest.useFakeTimers({
      doNotFake: ['Date', 'nextTick', 'queueMicrotask', 'setImmediate', 'clearImmediate'],
    });
    // The time that passes goes on from here, instead of beginning anew.
    jest.advanceTimersByTime(now);
    jumping = jump();
  });
  afterAll(async () => {
    over.abort();
    await jumping;
    jest.useRealTimers();
  });
}
