import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { LIMITS } from '../../../shared/limits.ts';
import {
  bytesOf,
  type Position,
  type ReadOptions,
  type StoredEvent,
} from '../../../shared/ports/eventStore.ts';
import { openForReading } from './database.ts';
import { toStoreError, logReplacedError, storeClosedError } from './errors.ts';
import { describeFileChange, identifyFiles, type LogFiles } from './fileIdentity.ts';

type Row = [number, string, number, string, string, string, string];

const COLUMNS = 'position, stream, revision, id, type, data, metadata';

/** The number of digits of the largest safe integer. */
const DIGITS = 16;

/** Positions are zero-padded, so that they sort as text. */
export const toPosition = (position: number): Position =>
  String(position).padStart(DIGITS, '0') as Position;

export const isPosition = (text: string): boolean => text.length === DIGITS && /^\d+$/.test(text);

/** The format of a position, for error messages. */
export const POSITION_FORM = `${DIGITS} digits, as ${toPosition(42)}`;

/** Throws `position_invalid` for a text that is not a position of this adapter. */
export function requirePositionForm(text: string): void {
  if (isPosition(text)) return;
  throw new TurnlogError(
    'position_invalid',
    `${text} is no position of an embedded log: one has ${POSITION_FORM}.`,
  );
}

function toEvent(row: unknown): StoredEvent {
  const [position, stream, revision, id, type, data, metadata] = row as Row;
  return { id, stream, revision, position: toPosition(position), type, data, metadata };
}

function toEvents(rows: Iterable<unknown>, maxBytes: number): StoredEvent[] {
  const events: StoredEvent[] = [];
  let bytes = 0;
  for (const row of rows) {
    const event = toEvent(row);
    events.push(event);
    bytes += bytesOf(event);
    if (bytes >= maxBytes) break;
  }
  return events;
}

/** How many of the next events reach a size, or all. */
function countUpTo(sizes: readonly unknown[], maxBytes: number): number {
  let bytes = 0;
  const last = sizes.findIndex((row) => (bytes += (row as [number])[0]) >= maxBytes);
  return last === -1 ? sizes.length : last + 1;
}

function prepareReads(database: DatabaseSync) {
  const prepare = (rest: string, columns = COLUMNS): StatementSync => {
    const statement = database.prepare(`SELECT ${columns} FROM events ${rest}`);
    // Arrays are twice as fast as objects (measured).
    statement.setReturnArrays(true);
    return statement;
  };
  const after = 'WHERE position > ? ORDER BY position LIMIT ?';
  return {
    /** The sizes are in the header of each row: counting first, and reading all at once, takes half the time. */
    sizesAfter: prepare(after, 'octet_length(data) + octet_length(metadata)'),
    forwards: prepare('WHERE stream = ? AND revision >= ? ORDER BY revision LIMIT ?'),
    backwards: prepare('WHERE stream = ? AND revision <= ? ORDER BY revision DESC LIMIT ?'),
    after: prepare(after),
    at: prepare('WHERE position = ?'),
    head: database.prepare('SELECT max(position) AS position FROM events'),
  };
}

export interface Reader {
  readStream(stream: string, options: ReadOptions): StoredEvent[];
  /**
   * Returns the events after a position: at most `limit`, fewer if they are large, and at least one
   * if there is any. Throws `log_changed`: a follower must not continue in files that the log's
   * names no longer refer to.
   */
  readAfter(position: Position | undefined, limit: number): StoredEvent[];
  /** The event at exactly this position. */
  eventAt(position: Position): StoredEvent | undefined;
  head(): Position | undefined;
  /** The open files. */
  files: LogFiles;
  close(): void;
}

/**
 * Reads the event log on a connection of the calling thread: reads take microseconds, less than
 * passing them to another thread. The methods throw `store_unavailable`.
 */
export function openReader(file: string): Reader {
  const database = openForReading(file);
  const statements = prepareReads(database);
  const files = identifyFiles(file);

  function read<Result>(query: () => Result): Result {
    if (!database.isOpen) throw storeClosedError();
    try {
      return query();
    } catch (error) {
      throw toStoreError(error);
    }
  }

  function readStream(
    stream: string,
    { direction, from, limit, maxBytes }: ReadOptions,
  ): StoredEvent[] {
    const start = from ?? (direction === 'forwards' ? 0 : Number.MAX_SAFE_INTEGER);
    return read(() =>
      toEvents(statements[direction].iterate(stream, start, limit), maxBytes ?? Infinity),
    );
  }

  function readAfter(position: Position | undefined, limit: number): StoredEvent[] {
    const events = read(() => {
      const from = Number(position ?? 0);
      const { sizesAfter, after } = statements;
      const count = countUpTo(sizesAfter.all(from, limit), LIMITS.store.batchBytes);
      return after.all(from, count).map(toEvent);
    });
    const change = describeFileChange(files);
    if (change !== undefined) throw logReplacedError(change);
    return events;
  }

  return {
    files,
    readStream,
    readAfter,
    eventAt: (position) => read(() => statements.at.all(Number(position)).map(toEvent)[0]),
    head() {
      const position = read(() => statements.head.get()?.['position']);
      return typeof position === 'number' ? toPosition(position) : undefined;
    },
    close() {
      if (database.isOpen) database.close();
    },
  };
}
