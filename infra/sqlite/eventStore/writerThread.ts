import { Worker } from 'node:worker_threads';
import {
  logChangedError,
  storeUnavailableError,
  TurnlogError,
} from '../../../shared/lib/errors/turnlogError.ts';
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
   * Resolves once the append is durable. `bytes` is its size. Errors: those of EventStore.append.
   */
  append(append: Append, bytes: number): Promise<AppendedEvents>;
  /** Resolves after everything accepted has been answered and the thread has ended. */
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
  /** So many bytes were answered. */
  onAnswered: (bytes: number) => void;
  onEnd: (failure: TurnlogError) => void;
}

const sizeOf = (appends: readonly Pending[]): number =>
  appends.reduce((sum, { bytes }) => sum + bytes, 0);

/** A Worker, and what was sent to it and is not answered yet, in order. */
function startWorker(workerData: WriterData, { onAnswered, onEnd }: Listener) {
  const worker = new Worker(new URL('./writerWorker.ts', import.meta.url), {
    workerData,
    name: 'event-store-writer',
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
 * Runs the writer of a log, whose files are known, on a thread of its own. One that dies is replaced
 * at the next append, where the files are the same.
 */
export function startWriterThread(file: string, files: LogFiles): WriterThread {
  let worker: ReturnType<typeof startWorker> | undefined;
  /** What waits to be sent. At the thread it is there twice more: as the message, and read from it. */
  const outbox: Pending[] = [];
  let pendingBytes = 0;
  let sentBytes = 0;
  let closing: Promise<void> | undefined;

  const running = () =>
    (worker ??= startWorker(
      { file, files },
      {
        onAnswered: (bytes) => {
          sentBytes -= bytes;
          flush();
        },
        onEnd: (failure) => {
          worker = undefined;
          sentBytes = 0;
          for (const pending of outbox.splice(0)) pending.reject(failure);
        },
      },
    ));

  /** How many of those that wait may be sent; one that is larger than all goes alone. */
  function room(): number {
    let bytes = sentBytes;
    const first = outbox.findIndex((pending) => {
      const fits = bytes === 0 || bytes + pending.bytes <= LIMITS.store.writingBytes;
      bytes += pending.bytes;
      return !fits;
    });
    return first < 0 ? outbox.length : first;
  }

  function flush(most = room()): void {
    const batch = outbox.splice(0, most);
    if (batch.length === 0) return;
    sentBytes += sizeOf(batch);
    running().send(batch);
  }

  async function append(request: Append, bytes: number): Promise<AppendedEvents> {
    if (closing) throw storeClosedError();
    const change = worker ? undefined : describeFileChange(files);
    if (change !== undefined) throw logReplacedError(change);
    if (pendingBytes + bytes > LIMITS.store.pendingBytes)
      throw storeUnavailableError('Too much is waiting to be written to the event log.');
    pendingBytes += bytes;
    try {
      return await new Promise<AppendedEvents>((resolve, reject) => {
        // One message for all appends of one turn of the event loop: they arrive together and share
        // a commit.
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
