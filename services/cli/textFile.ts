import { createReadStream } from 'node:fs';
import { MIB } from '../../shared/lib/units.ts';
import { fileError } from './failure.ts';

/** More than any checkpoint, receipt, list of ids or instruction has; a device never ends. */
const MOST_BYTES = 64 * MIB;

/**
 * Reads a text file or pipe that an operator named. Throws `configuration_invalid` for one that can't
 * be read, or has more than 64 MiB.
 */
export async function readTextFile(file: string): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of createReadStream(file) as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > MOST_BYTES) throw new Error('it is larger than 64 MiB');
      chunks.push(chunk);
    }
  } catch (error) {
    throw fileError(file, error);
  }
  return Buffer.concat(chunks).toString('utf8');
}
