import type { DatabaseSync } from 'node:sqlite';
import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { withCiphertexts } from '../../../shared/eventlog/encryption/ciphertexts.ts';
import type { EncodedEvent, ExpectedRevision } from '../../../shared/ports/eventStore.ts';
import { toStoreError, isSqliteBusy, logReplacedError } from './errors.ts';
import { describeFileChange, type LogFiles } from './fileIdentity.ts';

export interface Append {
  stream: string;
  expected: ExpectedRevision;
  events: readonly EncodedEvent[];
}

/** Revision and position of the last event of the append. */
export interface AppendedEvents {
  revision: number;
  position: number;
}

export type AppendOutcome = AppendedEvents | TurnlogError;

/** Writes appends and returns the outcome of each, in order. */
type Commit = (appends: readonly Append[]) => AppendOutcome[];

/** Inserts one append in the open transaction. Throws a refusal before the first insert. */
function prepareAppend(database: DatabaseSync): (append: Append) => AppendedEvents {
  const findHead = database.prepare(
    'SELECT max(revision) AS revision FROM events WHERE stream = ?',
  );
  const findId = database.prepare('SELECT stream, revision, position FROM events WHERE id = ?');
  const insert = database.prepare(
    'INSERT INTO events (stream, revision, id, type, data, metadata) VALUES (?, ?, ?, ?, ?, ?)',
  );

  return ({ stream, expected, events }) => {
    const first = expected === 'no_stream' ? 0 : expected + 1;
    const last = first + events.length - 1;
    const existing = events.map((event) => findId.get(event.id));
    if (
      existing.every(
        (row, index) => row?.['stream'] === stream && row['revision'] === first + index,
      )
    ) {
      return { revision: last, position: Number(existing.at(-1)?.['position']) };
    }
    if (existing.some((row) => row !== undefined))
      throw new TurnlogError(
        'event_id_reused',
        'An event with the same id is in the log at another place.',
      );
    const head = Number(findHead.get(stream)?.['revision'] ?? -1);
    if (head !== first - 1)
      throw new TurnlogError(
        'stream_conflict',
        `The stream is at revision ${head}, not at ${first - 1}.`,
      );
    let position = 0;
    for (const [index, event] of events.entries()) {
      const { id, type, data, metadata } = withCiphertexts(event, stream);
      position = Number(
        insert.run(stream, first + index, id, type, data, metadata).lastInsertRowid,
      );
    }
    return { revision: last, position };
  };
}

/**
 * Group commit: writes many appends in one transaction and returns their outcomes in order once
 * they are durable. If the transaction fails, each append is retried in its own transaction, so
 * that no append fails because of another.
 */
export function createWriter(database: DatabaseSync): Commit {
  const write = prepareAppend(database);
  const newest = database.prepare('SELECT position, id FROM events ORDER BY position DESC LIMIT 1');
  const idAt = database.prepare('SELECT id FROM events WHERE position = ?');
  /** The newest event after the previous commit. */
  let lastCommitted: ReturnType<typeof newest.get>;

  /** SQLite can replace the content of the open file, as `.restore` of its shell does. */
  function requireLast(): void {
    const { position, id } = lastCommitted ?? {};
    if (position !== undefined && idAt.get(position)?.['id'] !== id)
      throw logReplacedError('its newest event is gone');
  }

  function attempt(append: Append): AppendOutcome {
    try {
      return write(append);
    } catch (error) {
      if (error instanceof TurnlogError) return error;
      throw error;
    }
  }

  function commit(appends: readonly Append[]): AppendOutcome[] {
    try {
      // IMMEDIATE takes the write lock before the heads are read, because another process may
      // append too.
      database.exec('BEGIN IMMEDIATE');
      requireLast();
      const outcomes = appends.map(attempt);
      const newestEvent = newest.get();
      database.exec('COMMIT');
      lastCommitted = newestEvent;
      return outcomes;
    } catch (error) {
      // Some errors, such as a full disk, may have rolled back already.
      if (database.isTransaction) database.exec('ROLLBACK');
      if (appends.length > 1 && !isSqliteBusy(error))
        return appends.flatMap((append) => commit([append]));
      const failure = toStoreError(error);
      return appends.map(() => failure);
    }
  }

  return commit;
}

/**
 * Acknowledges a commit only if the log's names referred to the opened files before and after it.
 * Otherwise the outcome is `log_changed`, although the events may have been written.
 */
export function commitIfUnchanged(files: LogFiles, commit: Commit): Commit {
  return (appends) => {
    const before = describeFileChange(files);
    const outcomes = before === undefined ? commit(appends) : [];
    const change = before ?? describeFileChange(files);
    if (change === undefined) return outcomes;
    const failure = logReplacedError(change);
    return appends.map(() => failure);
  };
}
