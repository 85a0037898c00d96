import { createReadStream } from 'node:fs';
import { extract } from 'tar-stream';
import { proofInvalid, TurnlogError } from '../../shared/errors.ts';
import type { BundleFile } from '../../shared/proof/bundleFormat.ts';

const isSystemError = (error: unknown): error is NodeJS.ErrnoException =>
  error instanceof Error && 'syscall' in error;

/**
 * The files of a tar archive, in its order; each is read, or passed over, before the next one. No
 * more than a chunk of it is held, and names are never used as paths. Errors: `proof_invalid` for
 * what is no whole archive, `configuration_invalid` where the file can't be read.
 */
export async function* readTar(file: string): AsyncGenerator<BundleFile> {
  const archive = extract();
  const source = createReadStream(file);
  source.on('error', (error) => archive.destroy(error));
  source.pipe(archive);
  try {
    for await (const entry of archive) {
      const { name, type, size = 0, pax } = entry.header;
      // Extended headers may rename, and say another size to another reader.
      const isFile = type === 'file' && (pax ?? null) === null;
      yield { name, isFile, bytes: size, content: entry };
      entry.resume();
    }
  } catch (error) {
    if (isSystemError(error))
      throw new TurnlogError('configuration_invalid', `${file}: ${error.message}`, {
        cause: error,
      });
    if (error instanceof TurnlogError) throw error;
    const why = error instanceof Error ? error.message : String(error);
    throw proofInvalid(`${file} is no whole tar archive: ${why}.`, error);
  } finally {
    source.destroy();
  }
}
