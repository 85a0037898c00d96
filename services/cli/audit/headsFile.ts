/**
 * Files with the heads of a log's streams, to be kept outside the log: JSON lines. The first line
 * identifies the log. The last line is the sha256 of all lines before it, which reveals an incomplete
 * file and is short enough to be kept on paper.
 */
import { constants, createReadStream } from 'node:fs';
import { access, open, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { fileError, fileExistsError } from '../failure.ts';
import type { SavedHead } from '../../../shared/eventlog/reading/compareHeads.ts';
import type { StreamHeads } from '../../../shared/eventlog/reading/streamHeads.ts';
import { createHash, randomUUID } from 'node:crypto';
import type { Static, TProperties } from 'typebox';
import { Type } from '../../../shared/domain/jsonSchema.ts';
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

/** The origin of heads, and the sha256 of their lines. */
type HeadsOrigin = Static<typeof Origin> & Static<typeof Seal>;

const LINES_AT_ONCE = 1_000;

/** The text of heads in parts, ordered by stream; returns its sha256. */
function* formatHeads({ log_id, heads }: StreamHeads, at: string): Generator<string, HeadsOrigin> {
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
 * The heads in the lines of such a text. Only when it returns their origin are the heads complete and
 * unchanged; otherwise it throws `configuration_invalid`.
 */
async function* parseHeads(lines: AsyncIterable<string>): AsyncGenerator<SavedHead, HeadsOrigin> {
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

/** Far longer than any valid line. */
const MAX_LINE_CHARS = 64 * 1_024;

/**
 * Rejects a file that can't be written, or without `replace` one that exists, before the log is read.
 */
export async function requireWritable(
  file: string,
  { replace = false }: { replace?: boolean | undefined } = {},
): Promise<void> {
  try {
    await access(dirname(file), constants.W_OK);
  } catch (error) {
    throw fileError(file, error);
  }
  const existing = await stat(file).catch(() => undefined);
  if (existing && !existing.isFile()) throw fileError(file, new Error('it is there and no file'));
  if (existing && !replace) throw fileExistsError(file);
}

/**
 * Writes a file of heads under a temporary name, and renames it once it is complete and synced to
 * disk. An existing file is replaced.
 */
export async function writeHeadsFile(
  file: string,
  heads: StreamHeads,
  at: string,
  signal: AbortSignal,
): Promise<HeadsOrigin> {
  // Two commands that write one file have separate partial files.
  const partial = `${file}.${randomUUID()}.partial`;
  try {
    await using handle = await open(partial, 'wx');
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

/** A file of heads that was verified to be complete. */
export interface HeadsFile {
  origin: HeadsOrigin;
  heads: () => AsyncIterable<SavedHead>;
}

/** Reads a file of heads to its end to verify that it is complete, in constant memory. */
export async function openHeadsFile(file: string): Promise<HeadsFile> {
  const reading = readHeads(file);
  for (;;) {
    const next = await reading.next();
    if (next.done) return { origin: next.value, heads: () => readHeads(file) };
  }
}
