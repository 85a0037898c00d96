import { once } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from '@jest/globals';
import { sessionErasedError } from '../../../../../shared/erasure/errors.ts';
import {
  createRunsInFlight,
  type RunInFlight,
  type RunsInFlight,
  type RunSubject,
} from '../../../../../shared/runs/queueing/runsInFlight.ts';

const SUBJECT = { account_id: 'acct_1', agent_id: 'agent_1', session_id: 'session_1' };

/** Runs work as a run in flight. */
async function track<Result>(
  runs: RunsInFlight,
  subject: RunSubject,
  work: (run: RunInFlight) => Promise<Result>,
): Promise<Result> {
  const run = runs.start(subject);
  return work(run).finally(run.end);
}

/** Tracks a run that lasts until it is ended or its signal aborts. */
function tracked(runs: ReturnType<typeof createRunsInFlight>, subject = SUBJECT) {
  const { promise, resolve: end } = Promise.withResolvers<string>();
  let run: RunInFlight | undefined;
  const result = track(runs, subject, (given) => {
    run = given;
    const aborted = new Promise<never>((_resolve, reject) =>
      given.signal.addEventListener('abort', () => reject(given.signal.reason as Error)),
    );
    return Promise.race([promise, aborted]);
  });
  result.catch(() => undefined);
  return { run: run!, result, end };
}

describe('the runs in flight', () => {
  test('are counted until they have settled, and idle waits for the last one', async () => {
    const runs = createRunsInFlight();
    await runs.whenIdle();
    const [one, two] = [tracked(runs), tracked(runs)];
    expect(runs.count()).toBe(2);
    let idle = false;
    const waiting = runs.whenIdle().then(() => (idle = true));
    one.end('first');
    expect(await one.result).toBe('first');
    expect([runs.count(), idle]).toEqual([1, false]);
    two.end('second');
    await waiting;
    expect(runs.count()).toBe(0);
  });

  test('are idle after a failure too, and the failure is the result', async () => {
    const runs = createRunsInFlight();
    await expect(track(runs, SUBJECT, () => Promise.reject(new Error('failed')))).rejects.toThrow(
      'failed',
    );
    await runs.whenIdle();
    expect(runs.count()).toBe(0);
  });

  test('are all aborted by an interruption, which they can tell from a time limit', async () => {
    const runs = createRunsInFlight();
    const [one, two] = [tracked(runs), tracked(runs)];
    two.run.startTimeout(1);
    await expect(two.result).rejects.toMatchObject({
      code: 'model_timeout',
      retriable: true,
      message: expect.stringContaining('1 ms'),
    });
    runs.interruptAll();
    await expect(one.result).rejects.toMatchObject({
      code: 'store_unavailable',
      retriable: true,
      retryAfterSeconds: 1,
    });
    expect([one.run.isInterrupted(), two.run.isInterrupted()]).toEqual([true, false]);
    await runs.whenIdle();
  });

  test('are joined by no other after the interruption, though a request was on its way', async () => {
    const runs = createRunsInFlight();
    runs.interruptAll();
    let began = false;
    await expect(track(runs, SUBJECT, () => Promise.resolve((began = true)))).rejects.toMatchObject(
      {
        code: 'store_unavailable',
        retriable: true,
      },
    );
    expect([began, runs.count()]).toEqual([false, 0]);
  });

  test('that were out of time before the interruption keep that reason', async () => {
    const runs = createRunsInFlight();
    let given: RunInFlight | undefined;
    const { promise, resolve: end } = Promise.withResolvers<void>();
    const result = track(runs, SUBJECT, async (run) => {
      given = run;
      run.startTimeout(1);
      await new Promise((resolve) => run.signal.addEventListener('abort', resolve));
      await promise;
    });
    await new Promise((resolve) => given!.signal.addEventListener('abort', resolve));
    runs.interruptAll();
    expect([given!.isInterrupted(), (given!.signal.reason as { code: string }).code]).toEqual([
      false,
      'model_timeout',
    ]);
    end();
    await result;
  });

  test('have no time limit before their clock is started', async () => {
    const runs = createRunsInFlight();
    const one = tracked(runs);
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect(one.run.signal.aborted).toBe(false);
    one.end('done');
    await one.result;
  });

  test('are ended that are meant, before and after their turns begin, and no others', async () => {
    const runs = createRunsInFlight();
    const [meant, other] = [tracked(runs), tracked(runs, { ...SUBJECT, session_id: 'session_2' })];
    runs.interruptMatching(({ session_id }) => session_id === 'session_1', sessionErasedError());
    await expect(meant.result).rejects.toMatchObject({ code: 'session_erased' });
    expect(meant.run.startSignal.reason).toMatchObject({ code: 'session_erased' });
    expect([other.run.signal.aborted, other.run.startSignal.aborted]).toEqual([false, false]);
    other.end('goes on');
    expect(await other.result).toBe('goes on');
  });

  test('are interrupted in many turns of the event loop when each takes long to end', async () => {
    const runs = createRunsInFlight();
    const many = Array.from({ length: 40 }, () => runs.start(SUBJECT));
    const interrupted = () => many.filter((run) => run.isInterrupted()).length;
    const ends = many.map(({ signal }) => once(signal, 'abort'));
    for (const { signal } of many)
      signal.addEventListener('abort', () => {
        const until = performance.now() + 1;
        while (performance.now() < until);
      });
    runs.interruptMatching(() => true, sessionErasedError());
    expect(interrupted()).toBeLessThan(many.length);
    await setImmediate();
    expect(interrupted()).toBeLessThan(many.length);
    await Promise.all(ends);
    expect(interrupted()).toBe(many.length);
  });
});
