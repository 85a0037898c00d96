import type { Worker } from 'node:worker_threads';
import { createBackoff } from '../../../shared/lib/time/backoff.ts';
import { sleepUntilAborted } from '../../../shared/lib/time/sleep.ts';
import {
  createProgressChannel,
  type ProgressSource,
} from '../../../shared/projections/progress.ts';
import { CLOSE, type ProjectorMessage } from './messages.ts';
import { logParked, progressLines } from './reports.ts';
import type { ProjectorLogger } from './projection.ts';

const PAUSES = { firstMs: 100, longestMs: 5000 };
const CLOSE_LIMIT_MS = 5000;

/**
 * For the worker's `resourceLimits`. V8 collects the more eagerly the smaller its limits are: after
 * catching up with a long log the thread holds half of what it would otherwise. A batch of the
 * largest events fits well.
 */
export const THREAD_LIMITS = { maxYoungGenerationSizeMb: 8, maxOldGenerationSizeMb: 256 };

interface Trouble {
  sinceMs: number;
  /** Half a sentence. */
  reason: string;
}

export interface ProjectorThread {
  /** For the read models of this thread. */
  progress: ProgressSource;
  /** True while the thread lives, can apply events and has applied all that it has seen in the log. */
  caughtUp(): boolean;
  /** Since when, in milliseconds, and why nothing could be applied; undefined while it can. */
  trouble(): Trouble | undefined;
  /** Why the read models are being rebuilt; undefined where they aren't. */
  healing(): string | undefined;
  /** Why the log is not followed; undefined while it is. */
  logChanged(): string | undefined;
  /** Half a sentence on why turns can't be indexed; undefined while they can. */
  notIndexed(): string | undefined;
  /** Lets the batch at work finish, then ends the thread. */
  close(): Promise<void>;
}

interface ThreadOptions {
  /** Starts the worker, which tells what ProjectorMessage says. */
  spawn: () => Worker;
  logger: ProjectorLogger;
}

/** The end of a worker, with its error if it had one. */
const endOf = (worker: Worker): Promise<Error> =>
  new Promise((resolve) => {
    let failure: Error | undefined;
    worker.once('error', (error: Error) => {
      failure = error;
    });
    worker.once('exit', (code) =>
      resolve(failure ?? new Error(`the projector's thread ended with code ${code}`)),
    );
  });

/**
 * Runs the projector in a thread of its own, so that applying events never holds up requests, and
 * starts it again when it dies. Resolves with its first message. Errors: the thread's own when it
 * dies before that, because then something is wrong with the data folder that a second start would
 * not cure.
 */
export async function startProjectorThread({
  spawn,
  logger,
}: ThreadOptions): Promise<ProjectorThread> {
  const source = createProgressChannel();
  const closing = new AbortController();
  const logProgress = progressLines(logger);
  let healing: string | undefined;
  let logChanged: string | undefined;
  let notIndexed: string | undefined;
  let caughtUp = false;
  /** `since` in milliseconds of `performance.now()`. */
  let trouble: { since: number; reason: string } | undefined;
  const pauses = createBackoff(PAUSES);
  let worker: Worker;

  function fail(reason: string): void {
    caughtUp = false;
    trouble = { since: trouble?.since ?? performance.now(), reason };
  }

  function receive(message: ProjectorMessage): void {
    if (message.type === 'opened') return;
    if (message.type === 'log') {
      logger[message.level](message.fields, message.message);
      return;
    }
    if (message.type === 'healing') {
      healing = message.reason;
      logChanged = undefined;
      return;
    }
    if (message.type === 'log_changed') {
      logChanged = message.reason;
      caughtUp &&= logChanged === undefined;
      return;
    }
    if (message.type === 'index_trouble') {
      notIndexed = message.reason;
      return;
    }
    if (message.type === 'trouble') {
      fail(message.reason);
      return;
    }
    pauses.reset();
    if (trouble) logger.info({}, 'The read models follow the log again');
    trouble = undefined;
    const { batch } = message;
    caughtUp = batch.caughtUp;
    if (caughtUp) healing = undefined;
    logParked(logger, batch.parked);
    logProgress(batch);
    source.publish(batch);
  }

  function start(): Promise<Error> {
    worker = spawn();
    worker.on('message', receive);
    return endOf(worker);
  }

  async function supervise(firstEnd: Promise<Error>): Promise<void> {
    for (let end = firstEnd; ; end = start()) {
      const error = await end;
      fail(error.message);
      notIndexed = undefined;
      if (closing.signal.aborted) return;
      const retryInMs = pauses.next();
      logger.error(
        { err: error, retry_in_ms: retryInMs },
        "The projector's thread died and is started again",
      );
      await sleepUntilAborted(retryInMs, { signal: closing.signal, ref: false });
      if (closing.signal.aborted) return;
    }
  }

  const firstEnd = start();
  await new Promise<void>((resolve, reject) => {
    worker.once('message', () => resolve());
    firstEnd.then(reject, reject);
  });
  const supervision = supervise(firstEnd);

  return {
    progress: source,
    caughtUp: () => caughtUp,
    trouble: () =>
      trouble && {
        sinceMs: Math.round(performance.now() - trouble.since),
        reason: trouble.reason,
      },
    healing: () => healing,
    logChanged: () => logChanged,
    notIndexed: () => notIndexed,
    async close() {
      closing.abort();
      worker.postMessage(CLOSE);
      const force = setTimeout(() => void worker.terminate(), CLOSE_LIMIT_MS).unref();
      await supervision;
      clearTimeout(force);
    },
  };
}
