import { createReadStream, createWriteStream } from 'node:fs';
import { open, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { pack } from 'tar-stream';
import { asSentence } from './fileErrors.ts';

/** What an archive is made of: small files, and a last one that may be of any length. */
export interface TarContent {
  small: ReadonlyMap<string, string>;
  last: { name: string; pieces: AsyncIterable<string> };
  /** Of all files: the same content makes the same bytes. */
  modified: Date;
  /** Ends the writing; nothing stays then. */
  signal: AbortSignal;
}

const FILE = { mode: 0o644, uid: 0, gid: 0, type: 'file' } as const;

/** The header of a tar file says how long it is, which only the end of the pieces tells. */
async function spool(
  file: string,
  pieces: AsyncIterable<string>,
  signal: AbortSignal,
): Promise<number> {
  await pipeline(pieces, createWriteStream(file, { mode: 0o600 }), { signal });
  return (await stat(file)).size;
}

async function writeArchive(
  file: string,
  spooled: string,
  { small, last, modified, signal }: TarContent,
): Promise<void> {
  const size = await spool(spooled, last.pieces, signal);
  const archive = pack();
  const target = createWriteStream(file, { mode: 0o600, flush: true });
  const written = pipeline(archive, target, { signal });
  const fill = async (): Promise<void> => {
    for (const [name, text] of small)
      archive.entry({ ...FILE, name, mtime: modified, size: Buffer.byteLength(text) }, text);
    const header = { ...FILE, name: last.name, mtime: modified, size };
    await pipeline(createReadStream(spooled), archive.entry(header), { signal });
    archive.finalize();
  };
  // What fails to fill it must not leave the other one waiting.
  const filled = fill().catch((error: unknown) => {
    archive.destroy();
    throw error;
  });
  await Promise.all([filled, written]);
}

/**
 * Writes an archive beside its place, and puts it there when it is whole and on the disk: what is
 * there already is replaced. Memory does not grow with it, and nothing half stays. Errors:
 * `configuration_invalid` where it can't be written, those of the pieces, the signal's reason.
 */
export async function writeTar(file: string, content: TarContent): Promise<void> {
  const [partial, spooled] = [`${file}.partial`, `${file}.events.partial`];
  try {
    await writeArchive(partial, spooled, content);
    await rename(partial, file);
    await using folder = await open(dirname(file));
    await folder.sync();
  } catch (error) {
    content.signal.throwIfAborted();
    throw asSentence(file, error) ?? error;
  } finally {
    await Promise.all([partial, spooled].map((one) => rm(one, { force: true })));
  }
}
