import type { AppendOutcome } from './types.ts';

/** How long a server takes from writing an append to answering it, unless a test says otherwise. */
const COMMIT_MS = 2;

/** A server looks every second for writes that it has not seen committed for two. */
const TIMEOUT_MS = 2000;
const LOOK_MS = 1000;

interface Answers {
  answer: (outcome: AppendOutcome) => void;
  timeout: () => void;
}

/**
 * Appends that are written and not yet answered. A copy of one that comes meanwhile is never told
 * of its commit and times out, though the events are there.
 */
export function createInFlight(commitMs = COMMIT_MS) {
  let waiting: (() => void)[] = [];
  let oldest: bigint | undefined;

  function answerAll(): void {
    const answered = waiting;
    waiting = [];
    oldest = undefined;
    for (const answer of answered) answer();
  }

  /** Answers an outcome when its time has come. */
  return function settle(outcome: AppendOutcome, { answer, timeout }: Answers): void {
    if (outcome.kind !== 'success') return answer(outcome);
    if (outcome.again && oldest !== undefined && outcome.position >= oldest) {
      setTimeout(timeout, TIMEOUT_MS + (LOOK_MS - (Date.now() % LOOK_MS))).unref();
      return;
    }
    if (outcome.again) return answer(outcome);
    // What has arrived by then is still looked at before the answers go out.
    if (waiting.length === 0) setTimeout(() => setImmediate(answerAll), commitMs);
    waiting.push(() => answer(outcome));
    oldest ??= outcome.position;
  };
}
