import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { REPLICATION_SCHEMA } from './cluster/schema.ts';
import { checkCommit } from './commitCheck.ts';
import { createStreamMetadata, type StreamMetadata } from './streamMetadata.ts';
import { FIRST_EVENT_POSITION, systemEvents } from './systemEvents.ts';
import {
  DELETED_STREAM,
  type AppendOutcome,
  type Expected,
  type LogRecord,
  type Operation,
  type Proposed,
  type RecordHead,
  type StreamRange,
  type StreamRead,
  type TfPosition,
} from './types.ts';

const SCHEMA = `
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = NORMAL;
  CREATE TABLE IF NOT EXISTS records (
    position INTEGER PRIMARY KEY, next INTEGER NOT NULL, stream TEXT NOT NULL, revision INTEGER NOT NULL, id TEXT NOT NULL, type TEXT NOT NULL,
    content_type TEXT NOT NULL, data BLOB NOT NULL, metadata BLOB NOT NULL, created INTEGER NOT NULL,
    ends_write INTEGER NOT NULL, UNIQUE (stream, revision));
  CREATE INDEX IF NOT EXISTS records_by_id ON records (stream, id);
  CREATE TABLE IF NOT EXISTS empty_writes (position INTEGER PRIMARY KEY);
`;

/**
 * What a record takes in the log beside its data and metadata: positions of a real server are
 * bytes, so they are not dense.
 */
const RECORD_OVERHEAD = 96n;

const toRecord = (row: Record<string, unknown>): LogRecord => ({
  position: row['position'] as bigint,
  next: row['next'] as bigint,
  stream: row['stream'] as string,
  revision: row['revision'] as bigint,
  id: row['id'] as string,
  type: row['type'] as string,
  contentType: row['content_type'] as string,
  data: row['data'] as Uint8Array,
  metadata: row['metadata'] as Uint8Array,
  created: row['created'] as bigint,
});

/**
 * What the last record of a stream, and of its metadata, tells about it; `source` has the records
 * that count.
 */
function streamsOn(source: string, statement: (sql: string) => StatementSync) {
  const selectHead = statement(
    `SELECT revision FROM ${source} WHERE stream = ? ORDER BY revision DESC LIMIT 1`,
  );
  const selectLast = statement(
    `SELECT data FROM ${source} WHERE stream = ? ORDER BY revision DESC LIMIT 1`,
  );
  const metadata = createStreamMetadata(
    (stream) => selectLast.get(stream)?.['data'] as Uint8Array | undefined,
  );
  return {
    head: (stream: string): bigint =>
      (selectHead.get(stream)?.['revision'] as bigint | undefined) ?? -1n,
    metadata,
    isSoftDeleted: (stream: string): boolean =>
      metadata.of(stream).truncateBefore === DELETED_STREAM,
  };
}

export type NodeLog = ReturnType<typeof openLog>;

/**
 * The transaction log of a node or of a whole cluster, in `<folder>/log.db`: what a server does
 * with an append, a delete and a read. A log that is replicated shows its readers what is
 * committed, and decides on all that is written.
 */
export function openLog(folder: string, { replicated = false } = {}) {
  mkdirSync(folder, { recursive: true });
  const database = new DatabaseSync(join(folder, 'log.db'), { timeout: 5000 });
  database.exec(SCHEMA);
  if (replicated) database.exec(REPLICATION_SCHEMA);
  const visible = replicated ? 'committed' : 'records';
  const statement = (sql: string) => {
    const prepared = database.prepare(sql);
    prepared.setReadBigInts(true);
    return prepared;
  };
  const insert = statement('INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)');
  const selectEnd = statement('SELECT position, next FROM records ORDER BY position DESC LIMIT 1');
  const selectVisibleEnd = statement(
    `SELECT position, next FROM ${visible} ORDER BY position DESC LIMIT 1`,
  );
  const selectPosition = statement(`
    SELECT 1 FROM records WHERE position = ?1 UNION ALL SELECT 1 FROM empty_writes WHERE position = ?1`);
  const insertEmptyWrite = statement('INSERT INTO empty_writes VALUES (?)');
  const lengthenLast = statement('UPDATE records SET next = ? WHERE position = ?');
  const written = streamsOn('records', statement);
  const readable = replicated ? streamsOn(visible, statement) : written;
  const selectAt = statement('SELECT * FROM records WHERE stream = ? AND revision = ?');
  const selectById = statement('SELECT * FROM records WHERE stream = ? AND id = ?');
  const forwards = statement(
    `SELECT * FROM ${visible} WHERE stream = ? AND revision >= ? ORDER BY revision LIMIT ?`,
  );
  const backwards = statement(
    `SELECT * FROM ${visible} WHERE stream = ? AND revision BETWEEN ? AND ? ORDER BY revision DESC LIMIT ?`,
  );
  const youngFrom = statement(`
    SELECT revision FROM ${visible} WHERE stream = ? AND revision >= ? AND created >= ? ORDER BY revision LIMIT 1`);
  const allForwards = statement(
    `SELECT * FROM ${visible} WHERE position >= ? ORDER BY position LIMIT ?`,
  );
  const allBackwards = statement(
    `SELECT * FROM ${visible} WHERE position < ? ORDER BY position DESC LIMIT ?`,
  );
  const heads = `SELECT position, next, stream, type FROM ${visible}`;
  const scanForwards = statement(`${heads} WHERE position >= ? ORDER BY position LIMIT ?`);
  const scanBackwards = statement(`${heads} WHERE position < ? ORDER BY position DESC LIMIT ?`);
  const selectByPosition = statement(`SELECT * FROM ${visible} WHERE position = ?`);
  const listeners = new Set<() => void>();

  function wake(): void {
    // What comes by replication, or goes by it, is not known stream by stream.
    if (replicated) for (const { metadata } of [written, readable]) metadata.clear();
    for (const listener of listeners) listener();
  }

  const view = {
    head: written.head,
    isSoftDeleted: written.isSoftDeleted,
    at: (stream: string, revision: bigint) => optional(selectAt.get(stream, revision)),
    byId: (stream: string, id: string) => optional(selectById.get(stream, id)),
  };

  const endOf = (last: Record<string, unknown> | undefined): bigint =>
    (last?.['next'] as bigint | undefined) ?? FIRST_EVENT_POSITION;

  /**
   * A write without events takes its place in the log, where no reader meets it; in a log that is
   * replicated it takes none.
   */
  function writeNothing(): bigint {
    const last = selectEnd.get();
    if (!last || replicated)
      return (last?.['position'] as bigint | undefined) ?? FIRST_EVENT_POSITION;
    const position = endOf(last);
    insertEmptyWrite.run(position);
    lengthenLast.run(position + RECORD_OVERHEAD, last['position'] as bigint);
    return position;
  }

  function write(stream: string, first: bigint, events: readonly Proposed[]): bigint {
    written.metadata.written(stream);
    if (events.length === 0) return writeNothing();
    let position = -1n;
    for (const [index, event] of events.entries()) {
      position = endOf(selectEnd.get());
      const next = position + RECORD_OVERHEAD + BigInt(event.data.length + event.metadata.length);
      insert.run(
        position,
        next,
        stream,
        first + BigInt(index),
        event.id,
        event.type,
        event.contentType,
        event.data,
        event.metadata,
        BigInt(Date.now()),
        index === events.length - 1 ? 1n : 0n,
      );
    }
    return position;
  }

  function inTransaction<T>(work: () => T): T {
    database.exec('BEGIN IMMEDIATE');
    try {
      const result = work();
      database.exec('COMMIT');
      return result;
    } catch (error) {
      database.exec('ROLLBACK');
      written.metadata.clear();
      throw error;
    } finally {
      wake();
    }
  }

  const writeMetadata = (stream: string, json: string): bigint =>
    write(`$$${stream}`, written.head(`$$${stream}`) + 1n, [
      {
        id: crypto.randomUUID(),
        type: '$metadata',
        contentType: 'application/json',
        data: Buffer.from(json),
        metadata: new Uint8Array(),
      },
    ]);

  function append(stream: string, expected: Expected, events: readonly Proposed[]): AppendOutcome {
    return inTransaction(() => {
      const decision = checkCommit(view, {
        stream,
        expected,
        ids: events.map((event) => event.id),
      });
      if (decision.kind !== 'write') return decision;
      // A stream that was deleted softly comes back with its revisions going on: what is older
      // stays hidden.
      if (decision.softDeleted) writeMetadata(stream, `{"$tb":${decision.first}}`);
      const position = write(stream, decision.first, events);
      return { kind: 'success', revision: decision.first + BigInt(events.length) - 1n, position };
    });
  }

  function remove(stream: string, expected: Expected, hard: boolean): AppendOutcome {
    return inTransaction(() => {
      const decision = checkCommit(view, { stream, expected, ids: [] });
      if (decision.kind !== 'write') return decision;
      const position = hard
        ? write(stream, DELETED_STREAM, [
            {
              id: crypto.randomUUID(),
              type: '$streamDeleted',
              contentType: 'application/octet-stream',
              data: new Uint8Array(),
              metadata: new Uint8Array(),
            },
          ])
        : writeMetadata(stream, `{"$tb":${DELETED_STREAM}}`);
      return { kind: 'success', revision: decision.first - 1n, position };
    });
  }

  /** The oldest revision that readers see. */
  function oldestOf(
    stream: string,
    last: bigint,
    { truncateBefore, maxCount, maxAgeMs }: StreamMetadata,
  ): bigint {
    const counted =
      maxCount === undefined ? truncateBefore : max(truncateBefore, last - maxCount + 1n);
    if (maxAgeMs === undefined) return counted;
    const young = youngFrom.get(stream, counted, BigInt(Date.now() - maxAgeMs));
    return (young?.['revision'] as bigint | undefined) ?? last + 1n;
  }

  function readStream(stream: string, { from, direction, limit }: StreamRange): StreamRead {
    const last = readable.head(stream);
    if (last === DELETED_STREAM) return { kind: 'deleted' };
    const about = readable.metadata.of(stream);
    if (last < 0n || about.truncateBefore === DELETED_STREAM) return { kind: 'not_found' };
    const oldest = oldestOf(stream, last, about);
    const rows =
      direction === 'forwards'
        ? forwards.all(stream, from === 'end' ? last + 1n : max(from, oldest), limit)
        : backwards.all(stream, oldest, from === 'end' ? last : from, limit);
    return { kind: 'found', records: rows.map(toRecord) };
  }

  if (!replicated && !selectEnd.get()) {
    inTransaction(() => {
      for (const { stream, event } of systemEvents()) write(stream, 0n, [event]);
    });
  }

  return {
    /** Does what a client asks for. */
    perform: (operation: Operation): AppendOutcome =>
      operation.kind === 'append'
        ? append(operation.stream, operation.expected, operation.events)
        : remove(operation.stream, operation.expected, operation.hard),
    append,
    remove,
    readStream,
    /** The last revision of a stream, hidden or not; -1 when it has none. */
    head: readable.head,
    metadataOf: readable.metadata.of,
    isTombstoned: (stream: string) => readable.head(stream) === DELETED_STREAM,
    /** The position of the last event. */
    lastPosition: (): bigint => (selectVisibleEnd.get()?.['position'] as bigint | undefined) ?? -1n,
    /**
     * Whether a record begins here, as far as the log goes; what lies beyond is no wrong position.
     */
    isPosition: (position: bigint): boolean =>
      position <= 0n ||
      position >= endOf(selectVisibleEnd.get()) ||
      selectPosition.get(position) !== undefined,
    /** Records at a position or later, oldest first. */
    readAllForwards: (from: TfPosition, limit: number): LogRecord[] =>
      allForwards.all(boundOf(from), limit).map(toRecord),
    /** Records before a position, newest first. */
    readAllBackwards: (before: TfPosition | 'end', limit: number): LogRecord[] =>
      allBackwards.all(boundOf(before), limit).map(toRecord),
    /**
     * What a filter looks at, of records in either direction: a scan leaves the rest where it is.
     */
    scan: (
      direction: StreamRange['direction'],
      from: TfPosition | 'end',
      limit: number,
    ): RecordHead[] =>
      (direction === 'forwards' ? scanForwards : scanBackwards).all(
        boundOf(from),
        limit,
      ) as unknown as RecordHead[],
    recordAt: (position: bigint): LogRecord | undefined => optional(selectByPosition.get(position)),
    /**
     * Calls back after every write of this process, until the function that it returns is called.
     */
    onWrite(listener: () => void): () => void {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    /** Calls back as after a write: more of the log may be visible now. */
    wake,
    inTransaction,
    database,
    close: () => database.close(),
  };
}

/**
 * The least position that a record may have there: one at the commit position may lie before the
 * prepare position.
 */
const boundOf = (at: TfPosition | 'end'): bigint =>
  at === 'end' ? DELETED_STREAM : at.prepare > at.commit ? at.commit + 1n : at.commit;

const optional = (row: Record<string, unknown> | undefined): LogRecord | undefined =>
  row === undefined ? undefined : toRecord(row);
const max = (a: bigint, b: bigint): bigint => (a > b ? a : b);
