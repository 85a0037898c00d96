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

/** Inserts one append within the open transaction. A refusal is thrown before any insert. */
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
    const known = events.map((event) => findId.get(event.id));
    if (
      known.every((row, index) => row?.['stream'] === stream && row['revision'] === first + index)
    ) {
      return { revision: last, position: Number(known.at(-1)?.['position']) };
    }
    if (known.some((row) => row !== undefined))
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
 * Group commit: writes many appends in one transaction and returns the outcome of each, in order,
 * once they are durable. Should the transaction fail, each append gets one of its own, so that none
 * fails for what its neighbour did.
 */
export function createWriter(database: DatabaseSync): Commit {
  const write = prepareAppend(database);
  const newest = database.prepare('SELECT position, id FROM events ORDER BY position DESC LIMIT 1');
  const idAt = database.prepare('SELECT id FROM events WHERE position = ?');
  /** The newest event as of the commit before. */
  let last: ReturnType<typeof newest.get>;

  /** SQLite can put other content into the very file that is open: `.restore` of its shell does. */
  function requireLast(): void {
    const { position, id } = last ?? {};
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
      // IMMEDIATE takes the write lock before the heads are read: another process may append too.
      database.exec('BEGIN IMMEDIATE');
      requireLast();
      const outcomes = appends.map(attempt);
      const written = newest.get();
      database.exec('COMMIT');
      last = written;
      return outcomes;
    } catch (error) {
      // Some errors, a full disk among them, may have rolled back already.
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
 * Acknowledges only what is certain to be found again: what was committed while the log's names led
 * to the files that it was opened with, and do so still. Anything else is `log_changed`, and may
 * have been written.
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
