/**
 * The writing thread: the only place that waits for the disk. Started by eventStoreWriterThread.ts
 * with `{ file }`.
 */
import {
  parentPort,
  receiveMessageOnPort,
  workerData,
  type MessagePort,
} from 'node:worker_threads';
import { isTurnlogError, type ErrorCode } from '../../shared/errors.ts';
import { openForWriting } from './eventStoreDatabase.ts';
import { announceAppends } from './eventStoreNews.ts';
import { createWriter, type Append, type Outcome, type Written } from './eventStoreWriter.ts';

/** Appends in the order of their answers; `close` ends the thread after what was sent before it. */
export type WriterRequest = readonly Append[] | 'close';

/** A TurnlogError as it crosses threads: a class doesn't. */
export interface Refusal {
  code: ErrorCode;
  message: string;
  cause: unknown;
}

export type WriterReply = readonly (Written | Refusal)[];

const toReply = (outcome: Outcome): Written | Refusal =>
  isTurnlogError(outcome)
    ? { code: outcome.code, message: outcome.message, cause: outcome.cause }
    : outcome;

/** Everything that waits on the port, taken in one go: it shares one commit. */
function* drain(port: MessagePort, first: WriterRequest): Generator<WriterRequest> {
  yield first;
  for (let next = receiveMessageOnPort(port); next; next = receiveMessageOnPort(port))
    yield next.message as WriterRequest;
}

function serve(port: MessagePort, file: string): void {
  const database = openForWriting(file);
  const commit = createWriter(database);
  const news = announceAppends(file);

  port.on('message', (first: WriterRequest) => {
    const requests = [...drain(port, first)];
    const appends = requests.flatMap((request) => (request === 'close' ? [] : request));
    if (appends.length > 0) {
      const outcomes = commit(appends);
      port.postMessage(outcomes.map(toReply));
      if (outcomes.some((outcome) => !isTurnlogError(outcome))) news.announce();
    }
    if (requests.includes('close')) {
      database.close();
      news.close();
      port.close();
    }
  });
}

if (parentPort) serve(parentPort, (workerData as { file: string }).file);
