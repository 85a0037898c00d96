/**
 * The writer thread, the only code that waits for the disk. writerThread.ts starts it with
 * WriterData.
 */
import { flushCompileCache } from 'node:module';
import type { DatabaseSync } from 'node:sqlite';
import {
  parentPort,
  receiveMessageOnPort,
  workerData,
  type MessagePort,
} from 'node:worker_threads';
import { isTurnlogError, type ErrorCode } from '../../../shared/lib/errors/turnlogError.ts';
import { collectWhenIdle } from '../../../shared/lib/memory/collectWhenIdle.ts';
import { checkpointAfterCommits } from '../walCheckpoint.ts';
import { openForWriting } from './database.ts';
import { isOnlyWalMissing, type LogFiles } from './fileIdentity.ts';
import { announceAppend } from './appendNotifier.ts';
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

/**
 * Appends, which are answered in this order. `close` ends the thread after everything that was sent
 * before.
 */
export type WriterRequest = readonly Append[] | 'close';

/** The content of a TurnlogError: a class instance can't be passed between threads. */
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

/** Takes all waiting requests at once, so that they share one commit. */
function* drainRequests(port: MessagePort, first: WriterRequest): Generator<WriterRequest> {
  yield first;
  for (let next = receiveMessageOnPort(port); next; next = receiveMessageOnPort(port))
    yield next.message as WriterRequest;
}

/** The write-ahead log that is checkpointed, in pages. */
const CHECKPOINT_PAGES = 1_000;

/** The interval of the checks for a deleted -wal, in milliseconds. */
const FILE_CHECK_MS = 250;

/**
 * Acknowledged appends are in the -wal at first. If it was deleted, they are checkpointed into the
 * log's file, so that they outlive this process.
 */
function rescueWal(database: DatabaseSync, files: LogFiles): void {
  if (!isOnlyWalMissing(files)) return;
  try {
    database.exec('PRAGMA wal_checkpoint(PASSIVE)');
  } catch {
    // No append is acknowledged any more. The next check tries again, also for pages that a read
    // transaction held back.
  }
}

function serve(port: MessagePort, { file, files }: WriterData): void {
  const database = openForWriting(file);
  const commit = commitIfUnchanged(files, createWriter(database));
  const checkpoint = checkpointAfterCommits(database, CHECKPOINT_PAGES);
  const walCheck = setInterval(() => rescueWal(database, files), FILE_CHECK_MS);

  port.on('message', (first: WriterRequest) => {
    const requests = [...drainRequests(port, first)];
    const appends = requests.flatMap((request) => (request === 'close' ? [] : request));
    if (appends.length > 0) {
      const outcomes = commit(appends);
      port.postMessage(outcomes.map(toReply));
      if (outcomes.some((outcome) => !isTurnlogError(outcome))) announceAppend();
      checkpoint();
    }
    if (requests.includes('close')) {
      clearInterval(walCheck);
      database.close();
      port.close();
    }
  });
}

if (parentPort) {
  flushCompileCache();
  collectWhenIdle();
  serve(parentPort, workerData as WriterData);
}
