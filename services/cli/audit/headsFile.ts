/**
 * The text in which the heads of a log's streams are kept outside of it: JSON lines. The first one
 * names the log. The last one is the sha256 of all lines before it: it tells a whole text from a
 * half one, and is short enough to be kept on paper.
 */
import { constants, createReadStream } from 'node:fs';
import { access, open, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import type { SavedHead } from '../../../shared/eventlog/reading/compareHeads.ts';
import type { StreamHeads } from '../../../shared/eventlog/reading/streamHeads.ts';
import { createHash } from 'node:crypto';
import { Type, type Static, type TProperties } from 'typebox';
import { Instant } from '../../../shared/domain/schema.ts';
import { lazyValidator } from '../../../shared/lib/validation/validation.ts';

const lineSchema = <const Members extends TProperties>(members: Members) =>
  Type.Object(members, { additionalProperties: false });

const Sha256 = Type.String({ pattern: '^[0-9a-f]{64}$' });
const Count = Type.Integer({ minimum: 0 });
const Origin = lineSchema({
  turnlog_heads: Type.Literal(1),
  log_id: Type.String(),
  streams: Count,
  at: Instant,
});
const Seal = lineSchema({ sha256: Sha256 });

const isOrigin = lazyValidator(Origin);
const isHead = lazyValidator(lineSchema({ stream: Type.String(), revision: Count, hash: Sha256 }));
const isSeal = lazyValidator(Seal);

/** Where heads are from, and the sha256 of their lines. */
export type HeadsOrigin = Static<typeof Origin> & Static<typeof Seal>;

const LINES_AT_ONCE = 1_000;

/** The text of heads in parts, streams in the order of their names; returns its sha256. */
export function* formatHeads(
  { log_id, heads }: StreamHeads,
  at: string,
): Generator<string, HeadsOrigin> {
  const digest = createHash('sha256');
  const sealed = (lines: readonly object[]): string => {
    const text = lines.map((one) => `${JSON.stringify(one)}\n`).join('');
    digest.update(text);
    return text;
  };
  const origin: Static<typeof Origin> = { turnlog_heads: 1, log_id, streams: heads.size, at };
  yield sealed([origin]);
  const streams = [...heads.keys()].toSorted();
  for (let from = 0; from < streams.length; from += LINES_AT_ONCE) {
    const some = streams.slice(from, from + LINES_AT_ONCE);
    yield sealed(some.map((stream) => ({ stream, ...heads.get(stream) })));
  }
  const sha256 = digest.digest('hex');
  yield `${JSON.stringify({ sha256 })}\n`;
  return { ...origin, sha256 };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const invalidHeadsError = (why: string): TurnlogError =>
  new TurnlogError('configuration_invalid', `These are no heads to compare with: ${why}.`);

/**
 * The heads in lines of such a text; returns where they are from, and only then are they all there
 * and as they were written.
 * Errors: `configuration_invalid` in a sentence that says what is wrong with the text.
 */
export async function* parseHeads(
  lines: AsyncIterable<string>,
): AsyncGenerator<SavedHead, HeadsOrigin> {
  const digest = createHash('sha256');
  let origin: Static<typeof Origin> | undefined;
  let seal: string | undefined;
  let count = 0;
  for await (const text of lines) {
    const value = parseJson(text);
    count += 1;
    if (seal !== undefined) throw invalidHeadsError('lines follow the one that must be the last');
    if (isSeal()(value)) {
      seal = value.sha256;
      continue;
    }
    digest.update(`${text}\n`);
    if (origin === undefined) {
      if (!isOrigin()(value)) throw invalidHeadsError('the first line is none of `audit heads`');
      origin = value;
    } else if (isHead()(value)) yield value;
    else throw invalidHeadsError(`line ${count} is damaged`);
  }
  if (!origin || seal === undefined) throw invalidHeadsError('the end is missing');
  if (digest.digest('hex') !== seal)
    throw invalidHeadsError('the lines were damaged or changed, their sha256 is another one');
  return { ...origin, sha256: seal };
}

/** No line of ours comes near it. */
const MAX_LINE_CHARS = 64 * 1_024;

/** What the operating system says is a sentence: an operator mends it. */
const fileError = (file: string, error: unknown): TurnlogError =>
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
    throw fileError(file, error);
  }
  const there = await stat(file).catch(() => undefined);
  if (there && !there.isFile()) throw fileError(file, 'it is there and no file');
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
    throw error === signal.reason ? error : fileError(file, error);
  }
}

async function* readLines(file: string): AsyncGenerator<string> {
  let rest = '';
  for await (const chunk of createReadStream(file, 'utf8')) {
    const lines = (rest + String(chunk)).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
    if (rest.length > MAX_LINE_CHARS) break;
  }
  if (rest !== '') yield rest;
}

async function* readHeads(file: string): AsyncGenerator<SavedHead, HeadsOrigin> {
  try {
    return yield* parseHeads(readLines(file));
  } catch (error) {
    throw fileError(file, error);
  }
}

/** A file of heads that was read to its end once. */
export interface HeadsFile {
  origin: HeadsOrigin;
  heads: () => AsyncIterable<SavedHead>;
}

/**
 * Reads a file of heads to its end, to be sure that it is whole. Memory does not grow with it.
 * Errors: `configuration_invalid` in a sentence that says what is wrong with it.
 */
export async function openHeadsFile(file: string): Promise<HeadsFile> {
  const reading = readHeads(file);
  for (;;) {
    const next = await reading.next();
    if (next.done) return { origin: next.value, heads: () => readHeads(file) };
  }
}
