import type { Worker } from 'node:worker_threads';
import { createBackoff } from '../../../shared/lib/time/backoff.ts';
import { sleepUntilAborted } from '../../../shared/lib/time/sleep.ts';
import {
  createProgressChannel,
  type ProgressSource,
} from '../../../shared/projections/progress.ts';
import type { RecentText } from '../../../shared/search/recentTexts.ts';
import type { GenerationBatch } from './followGenerations.ts';
import type { ProjectorLogger } from './projection.ts';
import { createProjectorStatus, type ProjectorReport, type ProjectorStatus } from './status.ts';

const PAUSES = { firstMs: 100, longestMs: 5000 };
const CLOSE_LIMIT_MS = 5000;

/**
 * For the worker's `resourceLimits`. The limit of the old generation makes V8 collect garbage earlier,
 * which halves the thread's memory after catching up with a long log; a batch of the largest events
 * still fits. With a smaller young generation, collections took a sixth of the thread's time.
 */
export const THREAD_LIMITS = { maxYoungGenerationSizeMb: 24, maxOldGenerationSizeMb: 256 };

/** A message of the projector's thread to the thread that started it. */
export type ThreadMessage =
  /** The read models are open; the event store may still be unavailable. */
  | { type: 'opened' }
  | { type: 'progress'; batch: GenerationBatch }
  | ProjectorReport
  | { type: 'log'; level: keyof ProjectorLogger; fields: object; message: string };

/**
 * A message to the projector's thread: close, apply or index at once what is being gathered, or the
 * texts of events that were appended.
 */
export type ProjectorRequest = 'close' | 'apply' | 'index' | readonly RecentText[];

export interface ProjectorThread extends ProjectorStatus {
  /** For the read models of this thread. */
  progress: Required<ProgressSource>;
  /** Passes on texts that this process has appended. */
  sendTexts(texts: readonly RecentText[]): void;
  /** Finishes the current batch, then ends the thread. */
  close(): Promise<void>;
}

interface ThreadOptions {
  /** Starts the worker, which sends each ThreadMessage. */
  spawn: () => Worker;
  logger: ProjectorLogger;
}

/** Resolves when a worker has ended, with the reason. */
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
 * Runs the projector in a worker thread, so that applying events never delays requests, and restarts
 * the thread when it dies. Resolves with the thread's first message. Rejects when the thread dies before
 * that: then the data folder has a fault that a restart does not repair.
 */
export async function startProjectorThread({
  spawn,
  logger,
}: ThreadOptions): Promise<ProjectorThread> {
  const source = createProgressChannel();
  const closing = new AbortController();
  const status = createProjectorStatus(logger);
  const pauses = createBackoff(PAUSES);
  let worker: Worker;
  /** True until the next progress. */
  let isRequested = false;
  const send = (request: ProjectorRequest): void => worker.postMessage(request);

  function receive(message: ThreadMessage): void {
    if (message.type === 'opened') return;
    if (message.type === 'log') {
      logger[message.level](message.fields, message.message);
    } else if (message.type === 'progress') {
      pauses.reset();
      isRequested = false;
      status.onProgress(message.batch);
      source.publish(message.batch);
    } else status.record(message);
  }

  function start(): Promise<Error> {
    worker = spawn();
    isRequested = false;
    worker.on('message', receive);
    return endOf(worker);
  }

  async function supervise(firstEnd: Promise<Error>): Promise<void> {
    for (let end = firstEnd; ; end = start()) {
      const error = await end;
      status.record({ type: 'trouble', reason: error.message });
      status.record({ type: 'index_trouble', reason: undefined });
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
    ...status,
    sendTexts: (texts) => send(texts),
    progress: {
      subscribe: source.subscribe,
      request() {
        if (!isRequested) send('apply');
        isRequested = true;
      },
      requestIndex: () => send('index'),
    },
    async close() {
      closing.abort();
      send('close');
      const force = setTimeout(() => void worker.terminate(), CLOSE_LIMIT_MS).unref();
      await supervision;
      clearTimeout(force);
    },
  };
}
