import { sessionErasedError } from '../../erasure/errors.ts';
import { storeUnavailableError } from '../../lib/errors/turnlogError.ts';
import { InvalidCiphertext } from '../../eventlog/encryption/protectedText.ts';
import {
  reportDamage,
  withLostKeyReports,
  type StreamSource,
} from '../../eventlog/reading/reportDamage.ts';
import { endsWithErasure } from '../../eventlog/reading/erasureLookup.ts';
import { sessionStream } from '../../eventlog/streams.ts';
import { LIMITS } from '../../limits.ts';
import type { PageOf, ReadModels, TranscriptRows } from '../../ports/readModels.ts';
import type { SessionRow, TurnRow } from '../../readModels/tables.ts';
import { sessionNotFoundError, type NumberedPage } from '../queries.ts';
import { createTextOpener } from '../../eventlog/encryption/encryptedText.ts';
import type { ReadingKeys } from '../../eventlog/encryption/keyring.ts';
import { jsonLength } from '../../lib/validation/jsonComplexity.ts';
import { yieldToEventLoop, SLICE_BYTES } from '../../lib/concurrency/yieldToEventLoop.ts';

/** A copy of a turn's row with each text replaced. */
const mapTexts = (row: TurnRow, replace: (text: string) => string): TurnRow => ({
  ...row,
  input: replace(row.input),
  output: row.output === null ? null : replace(row.output),
  reasoning: row.reasoning === null ? null : replace(row.reasoning),
  error: row.error && { ...row.error, message: replace(row.error.message) },
  tool_calls: row.tool_calls.map((call) => ({
    ...call,
    call_id: replace(call.call_id),
    tool: replace(call.tool),
    arguments: replace(call.arguments),
    result: replace(call.result),
    ...(call.extra !== undefined && { extra: replace(call.extra) }),
    ...(call.content !== undefined && { content: replace(call.content) }),
    ...(call.reasoning !== undefined && { reasoning: replace(call.reasoning) }),
  })),
});

/** The texts of a turn's row that are encrypted in it. */
export function encryptedTextsOf(row: TurnRow): string[] {
  const texts: string[] = [];
  mapTexts(row, (text) => {
    texts.push(text);
    return text;
  });
  return texts;
}

/**
 * Decrypts the texts of a session's turns row by row and in place, so that encrypted and decrypted
 * texts are never all in memory at once.
 */
async function openTurnTexts(
  keys: ReadingKeys,
  { account_id, session_id }: Pick<SessionRow, 'account_id' | 'session_id'>,
  rows: TurnRow[],
): Promise<void> {
  const open = await createTextOpener(
    keys,
    sessionStream(session_id),
    rows.flatMap(encryptedTextsOf),
  );
  let chars = 0;
  for (const [index, row] of rows.entries()) {
    for (const { length } of encryptedTextsOf(row)) chars += length;
    if (chars > SLICE_BYTES) {
      await yieldToEventLoop(account_id);
      chars = 0;
    }
    rows[index] = mapTexts(row, open);
  }
}

export type TranscriptSource = StreamSource & {
  readModels: Pick<ReadModels, 'findTranscript' | 'findSession'>;
};

/**
 * A session and a page of its turns. Shared turns of a fork are rows of the session that recorded
 * them.
 */
export interface Transcript extends TranscriptRows {
  /** True if shared turns of the fork, or the first of them, were erased. */
  origin_erased: boolean;
}

/** Turns of a transcript that one session recorded, up to a turn number. */
interface OriginSegment {
  session: SessionRow;
  upTo: number;
}

/** Decrypts the texts of a session's turns. Resolves with false if the session was erased. */
async function openTexts(
  source: TranscriptSource,
  session: SessionRow,
  rows: TurnRow[],
): Promise<boolean> {
  const stream = sessionStream(session.session_id);
  try {
    await withLostKeyReports(source, stream, () => openTurnTexts(source.store.keys, session, rows));
    return true;
  } catch (error) {
    if (!(error instanceof InvalidCiphertext)) throw error;
    // The read models may not show the erasure yet.
    if (await endsWithErasure(source.store, stream)) return false;
    throw await reportDamage(source, stream, { reason: error.message, revision: undefined });
  }
}

/** Limits the rows of a page by number and bytes. */
function createPageBudget({ limit, bytes }: NumberedPage) {
  let rows = 0;
  let used = 0;
  const take = (row: TurnRow): boolean => {
    used += jsonLength(row);
    if (rows === limit || (rows > 0 && used > bytes)) return false;
    rows += 1;
    return true;
  };
  return {
    isFull: () => rows === limit || used >= bytes,
    remaining: () => ({ limit: limit - rows, bytes: bytes - used }),
    /** Takes the first rows, up to one that does not fit. */
    takeFitting(candidates: readonly TurnRow[]): TurnRow[] {
      const end = candidates.findIndex((row) => !take(row));
      return end === -1 ? [...candidates] : candidates.slice(0, end);
    },
  };
}

const turnsNotVisible = () =>
  storeUnavailableError('The read models do not show all of the turns that the session shares.');

/** The segments of a fork, oldest first, without an erased session and the segments before it. */
async function findSegments(
  { readModels }: TranscriptSource,
  fork: SessionRow,
  erasedIds: ReadonlySet<string>,
): Promise<{ segments: OriginSegment[]; erased: boolean }> {
  const segments: OriginSegment[] = [{ session: fork, upTo: Infinity }];
  let from = fork.forked_from;
  while (from) {
    const session = await readModels.findSession(from.session_id);
    if (session?.account_id !== fork.account_id || segments.length > LIMITS.turn.origins)
      throw turnsNotVisible();
    if (session.status === 'erased' || erasedIds.has(session.session_id))
      return { segments, erased: true };
    segments.unshift({ session, upTo: from.turn });
    from = session.forked_from;
  }
  return { segments, erased: false };
}

/** A page of the segments' turns, or the session that was erased in the meantime. */
async function readSegments(
  source: TranscriptSource,
  segments: readonly OriginSegment[],
  page: NumberedPage,
): Promise<PageOf<TurnRow> | { erased: SessionRow }> {
  const budget = createPageBudget(page);
  const rows: TurnRow[] = [];
  let { after = 0 } = page;
  for (const { session, upTo } of segments) {
    if (upTo <= after) continue;
    // A fork may have no turns after the shared ones.
    if (budget.isFull()) return { rows, more: segments.at(-1)!.session.turns > after };
    const { account_id, session_id } = session;
    const bounds = { ...budget.remaining(), after };
    const part = (await source.readModels.findTranscript(account_id, session_id, bounds))?.turns;
    if (!part) throw turnsNotVisible();
    const shared = part.rows.filter(({ turn }) => turn <= upTo);
    const fitting = budget.takeFitting(shared);
    if (!(await openTexts(source, session, fitting))) return { erased: session };
    rows.push(...fitting);
    after = rows.at(-1)?.turn ?? after;
    const more = part.more || fitting.length < part.rows.length;
    if (upTo === Infinity || (after < upTo && more)) return { rows, more };
    if (after < upTo) throw turnsNotVisible();
  }
  return { rows, more: false };
}

async function readFork(
  source: TranscriptSource,
  session: SessionRow,
  page: NumberedPage,
): Promise<Transcript> {
  const erasedIds = new Set<string>();
  for (;;) {
    const { segments, erased } = await findSegments(source, session, erasedIds);
    const turns = await readSegments(source, segments, page);
    if (!('erased' in turns)) return { session, turns, origin_erased: erased };
    if (turns.erased === session) throw sessionErasedError();
    erasedIds.add(turns.erased.session_id);
  }
}

/**
 * A session and a page of its turns with their texts, oldest first, after turn number `after`. A
 * fork starts with its shared turns, except erased ones. Errors: `session_not_found`,
 * `session_erased`, `stream_damaged` for a text that differs from the sealed one or whose key was
 * destroyed without an erasure; `key_missing`, `store_unavailable`.
 */
export async function readTranscript(
  source: TranscriptSource,
  accountId: string,
  sessionId: string,
  page: NumberedPage,
): Promise<Transcript> {
  const transcript = await source.readModels.findTranscript(accountId, sessionId, page);
  if (!transcript) throw sessionNotFoundError();
  const { session, turns } = transcript;
  if (session.status === 'erased') throw sessionErasedError();
  // A fork's own turns are read after its shared turns, so that both are never in memory at once.
  if (session.forked_from) return readFork(source, session, page);
  if (!(await openTexts(source, session, turns.rows))) throw sessionErasedError();
  return { ...transcript, origin_erased: false };
}
