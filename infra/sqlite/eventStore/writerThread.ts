import { Worker } from 'node:worker_threads';
import {
  logChangedError,
  storeUnavailableError,
  TurnlogError,
} from '../../../shared/lib/errors/turnlogError.ts';
import { createBackoff } from '../../../shared/lib/time/backoff.ts';
import { registerResource } from '../../../shared/lib/concurrency/resources.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { logReplacedError, storeClosedError } from './errors.ts';
import { describeFileChange, type LogFiles } from './fileIdentity.ts';
import type { AppendRefusal, WriterData, WriterReply, WriterRequest } from './writerWorker.ts';
import type { Append, AppendedEvents } from './writer.ts';

interface Pending {
  append: Append;
  bytes: number;
  resolve: (written: AppendedEvents) => void;
  reject: (error: TurnlogError) => void;
}

interface WriterThread {
  /**
   * Resolves once the append is durable. `bytes` is its size. Rejects with the errors of
   * EventStore.append.
   */
  append(append: Append, bytes: number): Promise<AppendedEvents>;
  /** Resolves after all accepted appends were answered and the thread has ended. */
  close(): Promise<void>;
}

function settle({ resolve, reject }: Pending, reply: AppendedEvents | AppendRefusal): void {
  if (!('code' in reply)) resolve(reply);
  else if (reply.code === 'store_unavailable')
    reject(storeUnavailableError(reply.message, reply.cause));
  else if (reply.code === 'log_changed') reject(logChangedError(reply.message, reply.cause));
  else reject(new TurnlogError(reply.code, reply.message));
}

interface Listener {
  /** Called with the total size of the answered appends. */
  onAnswered: (bytes: number) => void;
  onEnd: (failure: TurnlogError) => void;
}

/** Heap of the thread. On close, it receives all pending appends at once. */
const HEAP_MB = 256;
/** Heap of the thread for young objects. The default takes several times as much. */
const YOUNG_MB = 8;

/** Pauses after threads that ended before they answered. Each start takes tens of milliseconds of CPU. */
const RESTART_PAUSES = { firstMs: 100, longestMs: 5_000 };

const sizeOf = (appends: readonly Pending[]): number =>
  appends.reduce((sum, { bytes }) => sum + bytes, 0);

/** Starts the Worker and tracks the appends that were sent to it and not yet answered, in order. */
function startWorker(workerData: WriterData, { onAnswered, onEnd }: Listener) {
  const worker = new Worker(new URL('./writerWorker.ts', import.meta.url), {
    workerData,
    name: 'event-store-writer',
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MB, maxYoungGenerationSizeMb: YOUNG_MB },
  });
  const sent: Pending[] = [];
  let cause: unknown;
  worker.on('message', (replies: WriterReply) => {
    const answered = sent.splice(0, replies.length);
    for (const [index, reply] of replies.entries()) settle(answered[index] as Pending, reply);
    onAnswered(sizeOf(answered));
  });
  worker.on('error', (error: unknown) => (cause = error));
  const ended = new Promise<void>((resolve) => {
    worker.on('exit', () => {
      const failure = storeUnavailableError(
        'The thread that writes the event log has ended.',
        cause,
      );
      for (const pending of sent) pending.reject(failure);
      onEnd(failure);
      resolve();
    });
  });
  const post = (request: WriterRequest): void => worker.postMessage(request);
  function send(batch: readonly Pending[]): void {
    sent.push(...batch);
    post(batch.map((pending) => pending.append));
  }
  return { send, close: () => post('close'), ended };
}

/**
 * Runs the writer of a log in a separate thread. If the thread dies, the next append starts another
 * one, provided that the files are unchanged. While threads end before they answer, as when the file
 * can't be opened, appends are refused during increasing pauses.
 */
export function startWriterThread(file: string, files: LogFiles): WriterThread {
  let worker: ReturnType<typeof startWorker> | undefined;
  /**
   * Appends that are not sent yet. In the writer thread each append takes memory twice more: as the
   * message, and deserialized.
   */
  const outbox: Pending[] = [];
  let pendingBytes = 0;
  let sentBytes = 0;
  let rejected = 0;
  let closing: Promise<void> | undefined;
  const pauses = createBackoff(RESTART_PAUSES);
  let hasAnswered = false;
  /** The end of the last thread, and the time before which no other one is started. */
  let ended: { failure: TurnlogError; until: number } | undefined;
  registerResource('pending_appends', {
    usage: () => ({
      bytes: { limit: LIMITS.store.pendingBytes, used: pendingBytes },
      rejected: { account: 0, process: rejected },
    }),
  });

  const running = () =>
    (worker ??= startWorker(
      { file, files },
      {
        onAnswered: (bytes) => {
          hasAnswered = true;
          pauses.reset();
          sentBytes -= bytes;
          flush();
        },
        onEnd: (failure) => {
          worker = undefined;
          const pauseMs = hasAnswered ? 0 : pauses.next();
          ended = { failure, until: performance.now() + pauseMs };
          hasAnswered = false;
          sentBytes = 0;
          for (const pending of outbox.splice(0)) pending.reject(failure);
        },
      },
    ));

  /**
   * The number of queued appends that may be sent now. An append larger than the limit is sent
   * alone.
   */
  function sendableCount(): number {
    let bytes = sentBytes;
    const firstExcess = outbox.findIndex((pending) => {
      const fits = bytes === 0 || bytes + pending.bytes <= LIMITS.store.writingBytes;
      bytes += pending.bytes;
      return !fits;
    });
    return firstExcess < 0 ? outbox.length : firstExcess;
  }

  function flush(count = sendableCount()): void {
    const batch = outbox.splice(0, count);
    if (batch.length === 0) return;
    sentBytes += sizeOf(batch);
    running().send(batch);
  }

  async function append(request: Append, bytes: number): Promise<AppendedEvents> {
    if (closing) throw storeClosedError();
    const change = worker ? undefined : describeFileChange(files);
    if (change !== undefined) throw logReplacedError(change);
    if (!worker && ended && performance.now() < ended.until) throw ended.failure;
    if (pendingBytes + bytes > LIMITS.store.pendingBytes) {
      rejected += 1;
      throw storeUnavailableError('Too much is waiting to be written to the event log.');
    }
    pendingBytes += bytes;
    try {
      return await new Promise<AppendedEvents>((resolve, reject) => {
        // All appends of one event loop turn share one message, and therefore one commit.
        if (outbox.length === 0) setImmediate(() => flush());
        outbox.push({ append: request, bytes, resolve, reject });
      });
    } finally {
      pendingBytes -= bytes;
    }
  }

  async function close(): Promise<void> {
    flush(outbox.length);
    worker?.close();
    await worker?.ended;
  }

  running();
  return { append, close: () => (closing ??= close()) };
}
