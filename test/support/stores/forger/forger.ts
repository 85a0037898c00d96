/**
 * A forger: someone with write access to the files of an event log, and nothing else, who changes
 * them while the service runs. Each call opens the file, changes it in one transaction and closes it.
 */
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { canonicalJson } from '../../../../shared/eventlog/canonicalJson.ts';
import { eventHash, GENESIS_HASH } from '../../../../shared/eventlog/hashChain.ts';
import { toCommitments } from '../../../../shared/eventlog/encryption/protectedText.ts';

/** An event as the log holds it, with its boxes, and its data and metadata decoded. */
export interface LoggedEvent {
  stream: string;
  revision: number;
  id: string;
  type: string;
  data: Record<string, any>;
  metadata: Record<string, any>;
  /** The number by which the store orders the log. */
  position: number;
}

type Changed = Partial<Pick<LoggedEvent, 'id' | 'type' | 'data' | 'metadata'>>;

/** Returns what an event becomes; changes may also be made in place. */
export type Change = (event: LoggedEvent) => Changed | void;

/** The file, table and encoding of one kind of log. */
interface Kind {
  file: string;
  table: string;
  encode: (text: string) => string | Uint8Array;
  /** The columns that only this kind has. */
  more: Readonly<Record<string, number | string>>;
}

const SQLITE: Kind = { file: 'events.db', table: 'events', encode: (text) => text, more: {} };
const EVENTSTOREDB: Kind = {
  file: 'log.db',
  table: 'records',
  encode: (text) => Buffer.from(text),
  more: { next: 0, content_type: 'application/json', created: 0, ends_write: 1 },
};

const textOf = (value: unknown): string =>
  typeof value === 'string' ? value : Buffer.from(value as Uint8Array).toString();

const toEvent = (row: Record<string, unknown>): LoggedEvent => ({
  stream: row['stream'] as string,
  revision: Number(row['revision']),
  id: row['id'] as string,
  type: row['type'] as string,
  data: JSON.parse(textOf(row['data'])) as LoggedEvent['data'],
  metadata: JSON.parse(textOf(row['metadata'])) as LoggedEvent['metadata'],
  position: Number(row['position']),
});

/** The event with the `prev_hash` and `hash` that continue its stream's chain after this hash. */
function chained(event: LoggedEvent, prevHash: string): LoggedEvent {
  const { prev_hash: _, hash: __, ...covered } = event.metadata;
  const data = canonicalJson(toCommitments(event.data));
  const hash = eventHash(prevHash, { ...event, data, metadata: canonicalJson(covered) });
  return { ...event, metadata: { ...event.metadata, prev_hash: prevHash, hash } };
}

function forgerOf({ file, table, encode, more }: Kind, folder: string) {
  const path = join(folder, file);

  function inFile<Result>(work: (database: DatabaseSync) => Result): Result {
    const database = new DatabaseSync(path, { timeout: 5_000 });
    try {
      database.exec('BEGIN IMMEDIATE');
      const result = work(database);
      database.exec('COMMIT');
      return result;
    } finally {
      database.close();
    }
  }

  const select = (database: DatabaseSync, where: string, ...values: (string | number)[]) =>
    database
      .prepare(`SELECT * FROM ${table} WHERE ${where}`)
      .all(...values)
      .map(toEvent);

  const found = (database: DatabaseSync, stream: string, revision: number): LoggedEvent => {
    const [event] = select(database, 'stream = ? AND revision = ?', stream, revision);
    if (!event) throw new Error(`the log has no revision ${revision} of ${stream}`);
    return event;
  };

  function put(database: DatabaseSync, { position, ...event }: LoggedEvent): void {
    database
      .prepare(`UPDATE ${table} SET id = ?, type = ?, data = ?, metadata = ? WHERE position = ?`)
      .run(
        event.id,
        event.type,
        encode(canonicalJson(event.data)),
        encode(JSON.stringify(event.metadata)),
        position,
      );
  }

  function applyChange(event: LoggedEvent, change: Change): LoggedEvent {
    const copy = structuredClone(event);
    return { ...copy, ...change(copy) };
  }

  function rechain(database: DatabaseSync, stream: string, from: number): void {
    let hash =
      from === 0 ? GENESIS_HASH : (found(database, stream, from - 1).metadata['hash'] as string);
    for (const event of select(
      database,
      'stream = ? AND revision >= ? ORDER BY revision',
      stream,
      from,
    )) {
      const next = chained(event, hash);
      put(database, next);
      hash = next.metadata['hash'] as string;
    }
  }

  return {
    /** The event of a stream at a revision. Throws when there is none. */
    read: (stream: string, revision: number): LoggedEvent =>
      inFile((database) => found(database, stream, revision)),
    /** The events of a stream, oldest first. */
    stream: (stream: string): LoggedEvent[] =>
      inFile((database) => select(database, 'stream = ? ORDER BY revision', stream)),
    /** The events of the streams that begin with a prefix, in the order of the log. */
    events: (prefix = ''): LoggedEvent[] =>
      inFile((database) =>
        select(
          database,
          `substr(stream, 1, ?) = ? AND stream NOT LIKE '$%' ORDER BY position`,
          prefix.length,
          prefix,
        ),
      ),
    /** Changes one event, and leaves its hash and the rest of its stream as they are. */
    change: (stream: string, revision: number, change: Change): void =>
      inFile((database) => put(database, applyChange(found(database, stream, revision), change))),
    /** Changes one event, and recomputes the chain of its stream from there on. */
    rewrite: (stream: string, revision: number, change: Change): void =>
      inFile((database) => {
        put(database, applyChange(found(database, stream, revision), change));
        rechain(database, stream, revision);
      }),
    /** Recomputes the chain of a stream from a revision on. */
    rechain: (stream: string, from = 0): void =>
      inFile((database) => rechain(database, stream, from)),
    /** Deletes one event, and leaves the gap. */
    delete: (stream: string, revision: number): void =>
      inFile((database) => {
        const { position } = found(database, stream, revision);
        database.prepare(`DELETE FROM ${table} WHERE position = ?`).run(position);
      }),
    /** Deletes the events of a stream from a revision on; all of them by default. */
    cut: (stream: string, from = 0): void =>
      inFile(
        (database) =>
          void database
            .prepare(`DELETE FROM ${table} WHERE stream = ? AND revision >= ?`)
            .run(stream, from),
      ),
    /**
     * Inserts an event at a revision of a stream, at the end of the log: later revisions of the
     * stream move up by one. Its chain is recomputed from there on.
     */
    insert: (
      stream: string,
      revision: number,
      event: Pick<LoggedEvent, 'id' | 'type' | 'data' | 'metadata'>,
    ): void =>
      inFile((database) => {
        for (const later of select(
          database,
          'stream = ? AND revision >= ? ORDER BY revision DESC',
          stream,
          revision,
        ))
          database
            .prepare(`UPDATE ${table} SET revision = revision + 1 WHERE position = ?`)
            .run(later.position);
        const end = database.prepare(`SELECT * FROM ${table} ORDER BY position DESC LIMIT 1`).get();
        const position = Number(end?.['next'] ?? Number(end?.['position'] ?? 0) + 1);
        const data = encode(canonicalJson(event.data));
        const metadata = encode(JSON.stringify(event.metadata));
        const row = { ...more, position, stream, revision, id: event.id, type: event.type };
        const extra = 'next' in more ? { next: position + 96 + data.length + metadata.length } : {};
        const columns: Record<string, number | string | Uint8Array> = {
          ...row,
          ...extra,
          data,
          metadata,
        };
        const names = Object.keys(columns);
        database
          .prepare(
            `INSERT INTO ${table} (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`,
          )
          .run(...Object.values(columns));
        rechain(database, stream, revision);
      }),
  };
}

export type Forger = ReturnType<typeof forgerOf>;

/** A forger of the embedded log in a data folder. */
export const sqliteForger = (dataFolder: string): Forger => forgerOf(SQLITE, dataFolder);

/** A forger of the log of an EventStoreDB stand-in, in the folder that the stand-in was given. */
export const eventStoreDbForger = (nodeFolder: string): Forger =>
  forgerOf(EVENTSTOREDB, nodeFolder);
