import { constants, createReadStream } from 'node:fs';
import { access, open, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import type { KeptHead } from '../../../shared/eventlog/reading/compareHeads.ts';
import type { StreamHeads } from '../../../shared/eventlog/reading/streamHeads.ts';
import { parseHeads, formatHeads, type HeadsOrigin } from './headsFormat.ts';

/** No line of ours comes near it. */
const MAX_LINE_CHARS = 64 * 1_024;

/** What the operating system says is a sentence: an operator mends it. */
const asSentence = (file: string, error: unknown): TurnlogError =>
  new TurnlogError(
    'configuration_invalid',
    `${file}: ${error instanceof Error ? error.message : String(error)}`,
    { cause: error },
  );

/**
 * Refuses a file that can't be written, before a long reading of the log.
 * Errors: `configuration_invalid`.
 */
export async function requireWritable(file: string): Promise<void> {
  try {
    await access(dirname(file), constants.W_OK);
  } catch (error) {
    throw asSentence(file, error);
  }
  const there = await stat(file).catch(() => undefined);
  if (there && !there.isFile()) throw asSentence(file, 'it is there and no file');
}

/**
 * Writes a file of heads beside its place, and puts it there when it is whole and on the disk: what
 * is there already is replaced. Errors: `configuration_invalid`, the signal's reason.
 */
export async function writeHeadsFile(
  file: string,
  heads: StreamHeads,
  at: string,
  signal: AbortSignal,
): Promise<HeadsOrigin> {
  const partial = `${file}.partial`;
  try {
    await using handle = await open(partial, 'w');
    const text = formatHeads(heads, at);
    for (;;) {
      signal.throwIfAborted();
      const part = text.next();
      if (part.done) {
        await handle.sync();
        await rename(partial, file);
        return part.value;
      }
      await handle.writeFile(part.value);
    }
  } catch (error) {
    await rm(partial, { force: true }).catch(() => undefined);
    throw error === signal.reason ? error : asSentence(file, error);
  }
}

async function* linesOf(file: string): AsyncGenerator<string> {
  let rest = '';
  for await (const chunk of createReadStream(file, 'utf8')) {
    const lines = (rest + String(chunk)).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
    if (rest.length > MAX_LINE_CHARS) break;
  }
  if (rest !== '') yield rest;
}

async function* headsOf(file: string): AsyncGenerator<KeptHead, HeadsOrigin> {
  try {
    return yield* parseHeads(linesOf(file));
  } catch (error) {
    throw asSentence(file, error);
  }
}

/** A file of heads that was read to its end once. */
export interface HeadsFile {
  origin: HeadsOrigin;
  heads: () => AsyncIterable<KeptHead>;
}

/**
 * Reads a file of heads to its end, to be sure that it is whole. Memory does not grow with it.
 * Errors: `configuration_invalid` in a sentence that says what is wrong with it.
 */
export async function openHeadsFile(file: string): Promise<HeadsFile> {
  const reading = headsOf(file);
  for (;;) {
    const next = await reading.next();
    if (next.done) return { origin: next.value, heads: () => headsOf(file) };
  }
}
