/** Copies of the databases of a data folder, made beside a running server. */
import { rmSync, existsSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { DatabaseSync } from 'node:sqlite';
import { isTurnlogError, TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import type { Position } from '../../shared/ports/eventStore.ts';
import {
  createPrivateFile,
  eventLogFile,
  openForReading,
  openForWriting,
} from './eventStore/database.ts';
import { sqliteReason } from './eventStore/errors.ts';
import { toPosition } from './eventStore/reader.ts';
import { keyStoreFile, openKeyDatabase } from './keyStore/database.ts';

/** Rows of one transaction. */
const BATCH_SIZE = 2_000;
const COLUMNS = 'position, stream, revision, id, type, data, metadata';

const copyError = (file: string, why: string, cause?: unknown): TurnlogError =>
  new TurnlogError('store_unavailable', `${file} can't be copied: ${why}.`, { cause });

/** Converts an error of SQLite, such as a full disk; a TurnlogError passes unchanged. */
async function withCopyErrors<Result>(file: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (isTurnlogError(error) || (error as { code?: unknown }).code !== 'ERR_SQLITE_ERROR')
      throw error;
    throw copyError(file, sqliteReason(error) ?? (error as Error).message, error);
  }
}

/** Attaches a database that is only read, as `source`. */
function attachSource(database: DatabaseSync, file: string): void {
  database.prepare('ATTACH ? AS source').run(`${pathToFileURL(file).href}?mode=ro`);
}

/** A single file, which read-only media can hold too. */
function closeAsSingleFile(database: DatabaseSync): void {
  try {
    database.exec('PRAGMA main.journal_mode = DELETE');
  } finally {
    database.close();
  }
}

/** The position of the last event in the log of a folder; undefined for an empty log. */
export function endOfEventLog(folder: string): Position | undefined {
  const database = openForReading(eventLogFile(folder));
  try {
    const end = database.prepare('SELECT max(position) AS position FROM events').get()?.[
      'position'
    ];
    return typeof end === 'number' ? toPosition(end) : undefined;
  } finally {
    database.close();
  }
}

/** Throws `configuration_invalid` unless the last event that was copied is the one of the source. */
function requireSameLog(database: DatabaseSync, copied: number, file: string): void {
  const sameEvents = database
    .prepare(
      `SELECT count(*) AS events FROM main.events AS copy JOIN source.events AS original
         USING (position, stream, revision, id, data, metadata)
       WHERE position IN ((SELECT min(position) FROM main.events), ?)`,
    )
    .get(copied)?.['events'];
  const first = database.prepare('SELECT min(position) AS first FROM main.events').get()?.['first'];
  if (sameEvents === (first === copied ? 1 : 2)) return;
  throw new TurnlogError(
    'configuration_invalid',
    `${file} holds a part of another event log. Remove it, or name another folder.`,
  );
}

interface EventCopy {
  /** Folders of the logs. The log of `to` is created, or continued. */
  from: string;
  to: string;
  /** The last event to copy. */
  end: Position;
  /** Stops after a batch. */
  signal: AbortSignal;
  onProgress: (events: number) => void;
}

/**
 * Copies the events of a log up to a position. A log only grows, so a copy needs no snapshot, and one
 * that was interrupted at any moment continues after its last event. Resolves with false if the signal
 * stopped it. Throws `store_unavailable`, which names the reason, such as a full disk, and
 * `configuration_invalid` for the copy of another log.
 */
export function copyEventLog({ from, to, end, signal, onProgress }: EventCopy): Promise<boolean> {
  const file = eventLogFile(to);
  return withCopyErrors(file, async () => {
    createPrivateFile(to, file);
    const database = openForWriting(file);
    try {
      attachSource(database, eventLogFile(from));
      // Asked after each batch, so without the count, which reads the whole copy.
      const lastCopied = database.prepare('SELECT max(position) AS last FROM main.events');
      const insert = database.prepare(
        `INSERT INTO main.events (${COLUMNS}) SELECT ${COLUMNS} FROM source.events
         WHERE position > ? AND position <= ? ORDER BY position LIMIT ${BATCH_SIZE}`,
      );
      const { last } = lastCopied.get() as { last: number | null };
      const { n } = database.prepare('SELECT count(*) AS n FROM main.events').get() as {
        n: number;
      };
      if (last !== null) requireSameLog(database, last, file);
      let events = n;
      let position = last ?? 0;
      onProgress(events);
      while (position < Number(end)) {
        if (signal.aborted) return false;
        const changes = Number(insert.run(position, Number(end)).changes);
        if (changes === 0) throw copyError(eventLogFile(from), 'events at its end are missing');
        events += changes;
        position = (lastCopied.get() as { last: number }).last;
        onProgress(events);
        await setImmediate();
      }
      database.exec('DETACH source');
      return true;
    } finally {
      closeAsSingleFile(database);
    }
  });
}

/** Deletes a database with the files beside it. */
function removeDatabase(file: string): void {
  for (const suffix of ['', '-wal', '-shm', '-journal'])
    rmSync(`${file}${suffix}`, { force: true });
}

/**
 * Copies the key store of a folder. `readEnd` is called while no key is added or destroyed: each text up
 * to the position that it returns has its key in the copy, and each key that the copy has as destroyed
 * has its erasure up to there. Keys can be added and destroyed again while they are copied; an erasure
 * ends after that. An existing copy is replaced. Throws `store_unavailable`.
 */
export function copyKeyStore<End>(from: string, to: string, readEnd: () => End): Promise<End> {
  const file = keyStoreFile(to);
  return withCopyErrors(file, async () => {
    removeDatabase(file);
    const source = openKeyDatabase(from);
    const target = openKeyDatabase(to);
    try {
      attachSource(target, keyStoreFile(from));
      source.exec('PRAGMA busy_timeout = 5000; BEGIN IMMEDIATE');
      let end: End;
      try {
        target.exec('BEGIN');
        // The first read fixes what the transaction sees of the source.
        target.prepare('SELECT 1 FROM source.text_keys LIMIT 1').get();
        end = readEnd();
      } finally {
        source.exec('ROLLBACK');
      }
      target.exec(
        `INSERT INTO main.text_keys SELECT * FROM source.text_keys;
         INSERT INTO main.erasures SELECT * FROM source.erasures;
         COMMIT; DETACH source`,
      );
      return end;
    } finally {
      source.close();
      closeAsSingleFile(target);
    }
  });
}

/** Makes single files of the databases of a folder, after they were opened. */
export function closeDatabaseFiles(folder: string): void {
  for (const file of [eventLogFile(folder), keyStoreFile(folder)])
    if (existsSync(file)) closeAsSingleFile(new DatabaseSync(file));
}
