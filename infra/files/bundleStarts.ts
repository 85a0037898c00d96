import { open } from 'node:fs/promises';
import { TurnlogError } from '../../shared/errors.ts';
import type { Checkpoint, Position } from '../../shared/ports/eventStore.ts';
import { isAbsent } from './durable.ts';

/** Of a record, so that one is found without a look at the others. A disk writes it whole. */
const RECORD_BYTES = 512;

function encode(before: Checkpoint): Buffer {
  const text = JSON.stringify(before);
  const record = Buffer.alloc(RECORD_BYTES, ' ');
  if (Buffer.byteLength(text) >= RECORD_BYTES)
    throw new TurnlogError('event_invalid', 'A position or an id of an event is too long.');
  record.write(text);
  record.write('\n', RECORD_BYTES - 1);
  return record;
}

/**
 * Writes, into the file of all bundles, after which event each of these begins; durable when it
 * resolves.
 */
export async function putBundleStarts(
  file: string,
  bundles: ReadonlyMap<number, Checkpoint>,
): Promise<void> {
  if (bundles.size === 0) return;
  const handle = await open(file, 'r+').catch((error: unknown) => {
    if (isAbsent(error)) return open(file, 'w+', 0o600);
    throw error;
  });
  try {
    for (const [bundle, before] of bundles)
      await handle.write(encode(before), 0, RECORD_BYTES, bundle * RECORD_BYTES);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** After which event a bundle begins; undefined where that is not known. */
export async function readBundleStart(
  file: string,
  bundle: number,
): Promise<Checkpoint | undefined> {
  const handle = await open(file).catch((error: unknown) => {
    if (isAbsent(error)) return undefined;
    throw error;
  });
  if (!handle) return undefined;
  try {
    const record = Buffer.alloc(RECORD_BYTES);
    const { bytesRead } = await handle.read(record, 0, RECORD_BYTES, bundle * RECORD_BYTES);
    return bytesRead < RECORD_BYTES ? undefined : parseCheckpoint(record.toString());
  } finally {
    await handle.close();
  }
}

/** The checkpoint in a JSON text; undefined for anything else. */
export function parseCheckpoint(text: string): Checkpoint | undefined {
  try {
    const said = JSON.parse(text) as Record<string, unknown> | null;
    const { log_id, position, event_id, event_hash } = said ?? {};
    const all = [log_id, position, event_id, event_hash];
    if (!all.every((value) => typeof value === 'string')) return undefined;
    const [id, at, event, hash] = all as [string, string, string, string];
    return { log_id: id, position: at as Position, event_id: event, event_hash: hash };
  } catch {
    return undefined;
  }
}
