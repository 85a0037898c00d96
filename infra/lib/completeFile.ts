import { randomUUID } from 'node:crypto';
import { access, link, open, rename, rm, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';

/** Converts an error of the operating system. Returns undefined for other errors. */
export function toFileError(file: string, error: unknown): TurnlogError | undefined {
  if (typeof error !== 'object' || error === null || !('syscall' in error)) return undefined;
  const { message } = error as NodeJS.ErrnoException;
  return new TurnlogError('configuration_invalid', `${file}: ${message}`, { cause: error });
}

const existsError = (file: string, cause?: unknown): TurnlogError =>
  new TurnlogError(
    'configuration_invalid',
    `${file} exists already, or another command has just written it: it was left as it is.`,
    { cause },
  );

/** Errors of file systems without hard links. */
const NO_LINKS = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK']);

/**
 * Names a complete file, unless another writer has taken the name. On a file system without hard links
 * an empty file takes it first, and a crash may leave that.
 */
async function publish(partial: string, file: string): Promise<void> {
  try {
    await link(partial, file).catch(async (error: NodeJS.ErrnoException) => {
      if (!NO_LINKS.has(error.code ?? '')) throw error;
      await using _created = await open(file, 'wx', 0o600);
      await rename(partial, file);
    });
  } catch (error) {
    throw (error as NodeJS.ErrnoException).code === 'EEXIST' ? existsError(file, error) : error;
  }
}

const exists = (file: string): Promise<boolean> =>
  access(file).then(
    () => true,
    () => false,
  );

/**
 * Writes a separate partial file, syncs it and then names it, so that the file is never a mix of two
 * writers, nor incomplete after a crash. Without `replace`, throws `configuration_invalid` for a file
 * that exists before or after the writing. A failure removes the partial file.
 */
export async function writeCompleteFile(
  file: string,
  { replace = false }: { replace?: boolean | undefined },
  write: (target: FileHandle) => Promise<void>,
): Promise<void> {
  const partial = `${file}.${randomUUID()}.partial`;
  if (!replace && (await exists(file))) throw existsError(file);
  try {
    {
      await using target = await open(partial, 'wx', 0o600);
      await write(target);
      await target.sync();
    }
    await (replace ? rename(partial, file) : publish(partial, file));
    await using folder = await open(dirname(file));
    await folder.sync();
  } catch (error) {
    throw toFileError(file, error) ?? error;
  } finally {
    await rm(partial, { force: true });
  }
}
