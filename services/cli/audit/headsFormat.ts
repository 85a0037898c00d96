/**
 * The text in which the heads of a log's streams are kept outside of it: JSON lines. The first one
 * names the log. The last one is the sha256 of all lines before it: it tells a whole text from a
 * half one, and is short enough to be kept on paper.
 */
import { createHash } from 'node:crypto';
import { Type, type Static, type TProperties } from 'typebox';
import { Instant } from '../../../shared/domain/schema.ts';
import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import type { KeptHead } from '../../../shared/eventlog/reading/compareHeads.ts';
import type { StreamHeads } from '../../../shared/eventlog/reading/streamHeads.ts';
import { lazyValidator } from '../../../shared/lib/validation/validation.ts';

const line = <const Members extends TProperties>(members: Members) =>
  Type.Object(members, { additionalProperties: false });

const Sha256 = Type.String({ pattern: '^[0-9a-f]{64}$' });
const Count = Type.Integer({ minimum: 0 });
const Origin = line({
  turnlog_heads: Type.Literal(1),
  log_id: Type.String(),
  streams: Count,
  at: Instant,
});
const Seal = line({ sha256: Sha256 });

const isOrigin = lazyValidator(Origin);
const isHead = lazyValidator(line({ stream: Type.String(), revision: Count, hash: Sha256 }));
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

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const unusable = (why: string): TurnlogError =>
  new TurnlogError('configuration_invalid', `These are no heads to compare with: ${why}.`);

/**
 * The heads in lines of such a text; returns where they are from, and only then are they all there
 * and as they were written.
 * Errors: `configuration_invalid` in a sentence that says what is wrong with the text.
 */
export async function* parseHeads(
  lines: AsyncIterable<string>,
): AsyncGenerator<KeptHead, HeadsOrigin> {
  const digest = createHash('sha256');
  let origin: Static<typeof Origin> | undefined;
  let seal: string | undefined;
  let count = 0;
  for await (const text of lines) {
    const value = parsed(text);
    count += 1;
    if (seal !== undefined) throw unusable('lines follow the one that must be the last');
    if (isSeal()(value)) {
      seal = value.sha256;
      continue;
    }
    digest.update(`${text}\n`);
    if (origin === undefined) {
      if (!isOrigin()(value)) throw unusable('the first line is none of `audit heads`');
      origin = value;
    } else if (isHead()(value)) yield value;
    else throw unusable(`line ${count} is damaged`);
  }
  if (!origin || seal === undefined) throw unusable('the end is missing');
  if (digest.digest('hex') !== seal)
    throw unusable('the lines were damaged or changed, their sha256 is another one');
  return { ...origin, sha256: seal };
}
