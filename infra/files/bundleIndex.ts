import { hash as digest } from 'node:crypto';
import { constants } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import type { Checkpoint } from '../../shared/ports/eventStore.ts';
import { parseIndexCheckpoint } from '../../shared/transparency/tileStore.ts';
import { openRegularFile, readRangeSync } from '../lib/regularFile.ts';
import { isAbsent } from './atomicWrite.ts';

/** Fixed size of a record, for random access. Disks write a sector of this size atomically. */
const RECORD_BYTES = 512;

/** Hex digits of the checksum before the text of a record. */
const SUM_DIGITS = 16;
const sumOf = (text: string): string => digest('sha256', text, 'hex').slice(0, SUM_DIGITS);

function encode(before: Checkpoint): Buffer {
  const json = JSON.stringify(before);
  const text = `${sumOf(json)} ${json}`;
  const record = Buffer.alloc(RECORD_BYTES, ' ');
  if (Buffer.byteLength(text) >= RECORD_BYTES)
    throw new TurnlogError('event_invalid', 'A position or an id of an event is too long.');
  record.write(text);
  record.write('\n', RECORD_BYTES - 1);
  return record;
}

/**
 * Writes the starts of these bundles into the file of all bundles. They are durable when it
 * resolves.
 */
export async function writeBundleStarts(
  file: string,
  bundles: ReadonlyMap<number, Checkpoint>,
): Promise<void> {
  if (bundles.size === 0) return;
  const { O_RDWR, O_CREAT } = constants;
  const handle = await openRegularFile(file, O_RDWR | O_CREAT, 0o600);
  try {
    for (const [bundle, before] of bundles)
      await handle.write(encode(before), 0, RECORD_BYTES, bundle * RECORD_BYTES);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function decode(record: Buffer): Checkpoint | undefined {
  const text = record.toString();
  const json = text.slice(SUM_DIGITS).trim();
  return sumOf(json) === text.slice(0, SUM_DIGITS) ? parseIndexCheckpoint(json) : undefined;
}

const openIfExists = (file: string): Promise<FileHandle | undefined> =>
  openRegularFile(file).catch((error: unknown) => {
    if (isAbsent(error)) return undefined;
    throw error;
  });

/** Number of records per read. */
const READ_RECORDS = 256;

/** The first bundle from 1 to `bundles` − 1 whose start is missing or damaged. */
export async function firstUnknownStart(
  file: string,
  bundles: number,
): Promise<number | undefined> {
  if (bundles < 2) return undefined;
  const handle = await openIfExists(file);
  if (!handle) return 1;
  try {
    const records = Buffer.alloc(READ_RECORDS * RECORD_BYTES);
    for (let bundle = 1; bundle < bundles; bundle += READ_RECORDS) {
      const { bytesRead } = await handle.read(records, 0, records.length, bundle * RECORD_BYTES);
      for (let at = 0; at < Math.min(READ_RECORDS, bundles - bundle); at += 1) {
        const end = (at + 1) * RECORD_BYTES;
        if (end > bytesRead || !decode(records.subarray(end - RECORD_BYTES, end)))
          return bundle + at;
      }
    }
    return undefined;
  } finally {
    await handle.close();
  }
}

/** The last event before a bundle; undefined when its record is missing or damaged. */
export async function readBundleStart(
  file: string,
  bundle: number,
): Promise<Checkpoint | undefined> {
  const handle = await openIfExists(file);
  if (!handle) return undefined;
  try {
    const record = Buffer.alloc(RECORD_BYTES);
    const { bytesRead } = await handle.read(record, 0, RECORD_BYTES, bundle * RECORD_BYTES);
    return bytesRead < RECORD_BYTES ? undefined : decode(record);
  } finally {
    await handle.close();
  }
}

/** The same as readBundleStart, at once. */
export function readBundleStartSync(file: string, bundle: number): Checkpoint | undefined {
  const record = readRangeSync(file, bundle * RECORD_BYTES, RECORD_BYTES);
  return record.length < RECORD_BYTES ? undefined : decode(record);
}
