/**
 * The writing thread: the only place that waits for the disk. Started by writerThread.ts
 * with WriterData.
 */
import type { DatabaseSync } from 'node:sqlite';
import {
  parentPort,
  receiveMessageOnPort,
  workerData,
  type MessagePort,
} from 'node:worker_threads';
import { isTurnlogError, type ErrorCode } from '../../../shared/lib/errors/turnlogError.ts';
import { openForWriting } from './database.ts';
import { isOnlyWalMissing, type LogFiles } from './fileIdentity.ts';
import { createAppendNotifier } from './appendNotifier.ts';
import {
  createWriter,
  commitIfUnchanged,
  type Append,
  type AppendOutcome,
  type AppendedEvents,
} from './writer.ts';

/** The log, and the files that it had when it was opened. */
export interface WriterData {
  file: string;
  files: LogFiles;
}

/** Appends in the order of their answers; `close` ends the thread after what was sent before it. */
export type WriterRequest = readonly Append[] | 'close';

/** A TurnlogError as it crosses threads: a class doesn't. */
export interface AppendRefusal {
  code: ErrorCode;
  message: string;
  cause: unknown;
}

export type WriterReply = readonly (AppendedEvents | AppendRefusal)[];

const toReply = (outcome: AppendOutcome): AppendedEvents | AppendRefusal =>
  isTurnlogError(outcome)
    ? { code: outcome.code, message: outcome.message, cause: outcome.cause }
    : outcome;

/** Everything that waits on the port, taken in one go: it shares one commit. */
function* drainRequests(port: MessagePort, first: WriterRequest): Generator<WriterRequest> {
  yield first;
  for (let next = receiveMessageOnPort(port); next; next = receiveMessageOnPort(port))
    yield next.message as WriterRequest;
}

/** How often it is looked whether the -wal was deleted, in milliseconds. */
const FILE_CHECK_MS = 250;

/**
 * What was acknowledged stands in the -wal at first. Where that was deleted, it is brought into the
 * log's file, so that it outlasts this process.
 */
function rescueWal(database: DatabaseSync, files: LogFiles): void {
  if (!isOnlyWalMissing(files)) return;
  try {
    database.exec('PRAGMA wal_checkpoint(PASSIVE)');
  } catch {
    // Nothing is acknowledged any more, and the next look tries again: as it does for what a
    // transaction that reads has kept back.
  }
}

function serve(port: MessagePort, { file, files }: WriterData): void {
  const database = openForWriting(file);
  const commit = commitIfUnchanged(files, createWriter(database));
  const news = createAppendNotifier(file);
  const looking = setInterval(() => rescueWal(database, files), FILE_CHECK_MS);

  port.on('message', (first: WriterRequest) => {
    const requests = [...drainRequests(port, first)];
    const appends = requests.flatMap((request) => (request === 'close' ? [] : request));
    if (appends.length > 0) {
      const outcomes = commit(appends);
      port.postMessage(outcomes.map(toReply));
      if (outcomes.some((outcome) => !isTurnlogError(outcome))) news.announce();
    }
    if (requests.includes('close')) {
      clearInterval(looking);
      database.close();
      news.close();
      port.close();
    }
  });
}

if (parentPort) serve(parentPort, workerData as WriterData);
