import { createReadStream } from 'node:fs';
import { extract } from 'tar-stream';
import { proofInvalid } from '../../shared/errors.ts';
import type { BundleFile } from '../../shared/proof/bundleFormat.ts';
import { asSentence } from './fileErrors.ts';

/** Errors: `proof_invalid` for what is no whole archive, `configuration_invalid`. */
async function* told<Part>(file: string, parts: AsyncIterable<Part>): AsyncGenerator<Part> {
  try {
    yield* parts;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw asSentence(file, error) ?? proofInvalid(`${file} is no whole tar archive: ${why}`, error);
  }
}

/**
 * The files of a tar archive, in its order; each is read, or passed over, before the next one. No
 * more than a chunk of it is held, and names are never used as paths. Errors, those of reading a
 * file's content too: `proof_invalid` for what is no whole archive, `configuration_invalid` where it
 * can't be read.
 */
export async function* readTar(file: string): AsyncGenerator<BundleFile> {
  const archive = extract();
  const source = createReadStream(file);
  source.on('error', (error) => archive.destroy(error));
  source.pipe(archive);
  try {
    for await (const entry of told(file, archive)) {
      const { name, type, size, pax } = entry.header;
      // Extended headers may rename, and say another size to another reader.
      const isFile = type === 'file' && (pax ?? null) === null;
      const content = told(file, entry as AsyncIterable<Uint8Array>);
      yield { name, isFile, bytes: size, content };
      entry.resume();
    }
  } finally {
    source.destroy();
  }
}
