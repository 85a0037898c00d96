import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { LIMITS } from '../../shared/limits.ts';
import type {
  KeptCheckpoint,
  KeptCheckpoints,
} from '../../shared/transparency/kept/compareTree.ts';
import { readRegularFile } from '../lib/regularFile.ts';
import { limitedFetch } from '../lib/http/limitedFetch.ts';
import { describeFailure, readLimitedText } from './response.ts';

const { files: MAX_FILES, fileBytes: MAX_BYTES, answerMs: ANSWER_MS } = LIMITS.keptCheckpoints;

const isUrl = (location: string): boolean => /^https?:\/\//.test(location);

const tooLarge = `has more than ${MAX_BYTES} bytes`;

async function readFiles(location: string): Promise<KeptCheckpoint[] | { trouble: string }> {
  const isFolder = (await stat(location)).isDirectory();
  const names = isFolder
    ? (await readdir(location)).filter((name) => !name.startsWith('.')).toSorted()
    : [''];
  if (names.length > MAX_FILES) return { trouble: `holds more than ${MAX_FILES} files` };
  const checkpoints: KeptCheckpoint[] = [];
  for (const name of names) {
    const file = isFolder ? join(location, name) : location;
    const { size } = await stat(file);
    if (size > MAX_BYTES)
      return { trouble: isFolder ? `has the file ${name}, which ${tooLarge}` : tooLarge };
    checkpoints.push({ name: file, note: (await readRegularFile(file)).toString() });
  }
  return checkpoints;
}

async function readUrl(
  location: string,
  signal: AbortSignal,
): Promise<KeptCheckpoint[] | { trouble: string }> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]);
  const response = await limitedFetch(location, { redirect: 'manual', signal: limit });
  if (response.status !== 200) {
    await response.body?.cancel();
    return { trouble: `answers with the status ${response.status}` };
  }
  const note = await readLimitedText(response, MAX_BYTES);
  return note === undefined ? { trouble: tooLarge } : [{ name: location, note }];
}

/** Reads the checkpoints that are kept in a file, in the files of a folder, or at an https address. */
export const openKeptCheckpoints = (location: string): KeptCheckpoints => ({
  name: location,
  async read(signal) {
    try {
      return await (isUrl(location) ? readUrl(location, signal) : readFiles(location));
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      return {
        trouble: isUrl(location)
          ? describeFailure(error, ANSWER_MS)
          : `can’t be read (${code ?? (error as Error).name})`,
      };
    }
  },
});
