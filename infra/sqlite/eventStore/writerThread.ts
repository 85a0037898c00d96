import { Worker } from 'node:worker_threads';
import {
  logChangedError,
  storeUnavailableError,
  TurnlogError,
} from '../../../shared/lib/errors/turnlogError.ts';
import { createBackoff } from '../../../shared/lib/time/backoff.ts';
import { createPermitPool, type Permit } from '../../../shared/lib/concurrency/capacity.ts';
import { createFairQueue } from '../../../shared/lib/concurrency/fairQueue.ts';
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

/** The size of an append, and the account whose events they are: a stream has events of one account. */
interface AppendShare {
  account_id: string;
  bytes: number;
}

interface WriterThread {
  /** Resolves once the append is durable. Rejects with the errors of EventStore.append. */
  append(append: Append, share: AppendShare): Promise<AppendedEvents>;
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
 * Runs the writer of a log in a separate thread. Accounts take turns, each with its own appends in
 * order, and have shares of the bytes that may wait. If the thread dies, the next append starts another
 * one, provided that the files are unchanged. While threads end before they answer, as when the file
 * can't be opened, appends are refused during increasing pauses.
 */
export function startWriterThread(file: string, files: LogFiles): WriterThread {
  let worker: ReturnType<typeof startWorker> | undefined;
  /**
   * Appends that are not sent yet. In the writer thread each append takes memory twice more: as the
   * message, and deserialized.
   */
  const outbox = createFairQueue<Pending>();
  const pendingAppends = createPermitPool('pending_appends', {
    permits: Infinity,
    bytes: LIMITS.store.pendingBytes,
  });
  let sentBytes = 0;
  let closing: Promise<void> | undefined;
  const pauses = createBackoff(RESTART_PAUSES);
  let hasAnswered = false;
  /** The end of the last thread, and the time before which no other one is started. */
  let ended: { failure: TurnlogError; until: number } | undefined;

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
          for (let next = outbox.shift(); next; next = outbox.shift()) next.reject(failure);
        },
      },
    ));

  /**
   * Sends queued appends while the thread has at most so many bytes. An append larger than that is
   * sent alone.
   */
  function flush(writingBytes: number = LIMITS.store.writingBytes): void {
    const batch: Pending[] = [];
    for (let next = outbox.peek(); next; next = outbox.peek()) {
      if (sentBytes > 0 && sentBytes + next.bytes > writingBytes) break;
      sentBytes += next.bytes;
      batch.push(next);
      outbox.shift();
    }
    if (batch.length > 0) running().send(batch);
  }

  function admit(share: AppendShare): Permit {
    try {
      return pendingAppends.acquire(share);
    } catch (error) {
      throw storeUnavailableError('Too much is waiting to be written to the event log.', error);
    }
  }

  async function append(request: Append, share: AppendShare): Promise<AppendedEvents> {
    if (closing) throw storeClosedError();
    const change = worker ? undefined : describeFileChange(files);
    if (change !== undefined) throw logReplacedError(change);
    if (!worker && ended && performance.now() < ended.until) throw ended.failure;
    const { account_id, bytes } = share;
    using _permit = admit(share);
    return await new Promise<AppendedEvents>((resolve, reject) => {
      // All appends of one event loop turn share one message, and therefore one commit.
      if (outbox.size() === 0) setImmediate(() => flush());
      outbox.push(account_id, { append: request, bytes, resolve, reject });
    });
  }

  async function close(): Promise<void> {
    flush(Infinity);
    worker?.close();
    await worker?.ended;
  }

  running();
  return { append, close: () => (closing ??= close()) };
}
