import { sessionErasedError } from '../../erasure/errors.ts';
import { storeUnavailableError } from '../../lib/errors/turnlogError.ts';
import { BoxBroken } from '../../eventlog/encryption/protectedText.ts';
import {
  foundDamaged,
  notingLostKeys,
  type StreamSource,
} from '../../eventlog/reading/reportDamage.ts';
import { endsErased } from '../../eventlog/reading/erasureLookup.ts';
import { sessionStream } from '../../eventlog/streams.ts';
import { LIMITS } from '../../limits.ts';
import type { PageOf, ReadModels, TranscriptRows } from '../../ports/readModels.ts';
import type { SessionRow, TurnRow } from '../../readModels/tables.ts';
import { sessionNotFound, type NumberedPage } from '../queries.ts';
import { textOpener } from '../../eventlog/encryption/closedText.ts';
import type { Keyring } from '../../eventlog/encryption/keyring.ts';
import { yieldToEventLoop, SLICE_BYTES } from '../../lib/concurrency/yieldToEventLoop.ts';

/** A turn's row with each of its texts replaced. */
const mapTexts = (row: TurnRow, replace: (text: string) => string): TurnRow => ({
  ...row,
  input: replace(row.input),
  output: row.output === null ? null : replace(row.output),
  error: row.error && { ...row.error, message: replace(row.error.message) },
  tool_calls: row.tool_calls.map((call) => ({
    ...call,
    arguments: replace(call.arguments),
    result: replace(call.result),
    ...(call.content !== undefined && { content: replace(call.content) }),
  })),
});

function textsOf(row: TurnRow): string[] {
  const texts: string[] = [];
  mapTexts(row, (text) => {
    texts.push(text);
    return text;
  });
  return texts;
}

/**
 * Opens the texts of a session's turns, one row after the other, in place: closed and open they are
 * never held all at once.
 */
async function openTurnTexts(
  keys: Pick<Keyring, 'find'>,
  { account_id, session_id }: Pick<SessionRow, 'account_id' | 'session_id'>,
  rows: TurnRow[],
): Promise<void> {
  const open = await textOpener(keys, sessionStream(session_id), rows.flatMap(textsOf));
  let chars = 0;
  for (const [index, row] of rows.entries()) {
    for (const { length } of textsOf(row)) chars += length;
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

/** Turns that a fork shares are rows of the session that recorded them. */
export interface Transcript extends TranscriptRows {
  /** True where the turns that a fork shares, or the first of them, were erased. */
  origin_erased: boolean;
}

/** Turns of a transcript that one session recorded, up to a number. */
interface OriginSegment {
  session: SessionRow;
  upTo: number;
}

/** Opens the texts of a session's turns; false where it was erased. */
async function openTexts(
  source: TranscriptSource,
  session: SessionRow,
  rows: TurnRow[],
): Promise<boolean> {
  const stream = sessionStream(session.session_id);
  try {
    await notingLostKeys(source, stream, () => openTurnTexts(source.store.keys, session, rows));
    return true;
  } catch (error) {
    if (!(error instanceof BoxBroken)) throw error;
    // The read models may not have seen it yet.
    if (await endsErased(source.store, stream)) return false;
    throw await foundDamaged(source, stream, { reason: error.message, revision: undefined });
  }
}

/** The rows of a page, as far as there is room for them. */
function createPageBudget({ limit, bytes }: NumberedPage) {
  let rows = 0;
  let used = 0;
  const take = (row: TurnRow): boolean => {
    used += JSON.stringify(row).length;
    if (rows === limit || (rows > 0 && used > bytes)) return false;
    rows += 1;
    return true;
  };
  return {
    isFull: () => rows === limit || used >= bytes,
    left: () => ({ limit: limit - rows, bytes: bytes - used }),
    /** The first of them, until one does not fit. */
    of(found: readonly TurnRow[]): TurnRow[] {
      const end = found.findIndex((row) => !take(row));
      return end === -1 ? [...found] : found.slice(0, end);
    },
  };
}

const turnsNotVisible = () =>
  storeUnavailableError('The read models do not show all of the turns that the session shares.');

/**
 * Where the turns of a fork are, the oldest first: nothing of an erased session, nor of those before
 * it.
 */
async function findSegments(
  { readModels }: TranscriptSource,
  fork: SessionRow,
  gone: ReadonlySet<string>,
): Promise<{ stretches: OriginSegment[]; erased: boolean }> {
  const stretches: OriginSegment[] = [{ session: fork, upTo: Infinity }];
  let from = fork.forked_from;
  while (from) {
    const session = await readModels.findSession(from.session_id);
    if (session?.account_id !== fork.account_id || stretches.length > LIMITS.turn.origins)
      throw turnsNotVisible();
    if (session.status === 'erased' || gone.has(session.session_id))
      return { stretches, erased: true };
    stretches.unshift({ session, upTo: from.turn });
    from = session.forked_from;
  }
  return { stretches, erased: false };
}

/** A page of them; the session that was erased meanwhile where one was. */
async function readSegments(
  source: TranscriptSource,
  stretches: readonly OriginSegment[],
  page: NumberedPage,
): Promise<PageOf<TurnRow> | { gone: SessionRow }> {
  const room = createPageBudget(page);
  const rows: TurnRow[] = [];
  let { after = 0 } = page;
  for (const { session, upTo } of stretches) {
    if (upTo <= after) continue;
    if (room.isFull()) return { rows, more: true };
    const { account_id, session_id } = session;
    const bounds = { ...room.left(), after };
    const part = (await source.readModels.findTranscript(account_id, session_id, bounds))?.turns;
    if (!part) throw turnsNotVisible();
    const shared = part.rows.filter(({ turn }) => turn <= upTo);
    const fitting = room.of(shared);
    if (!(await openTexts(source, session, fitting))) return { gone: session };
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
  const gone = new Set<string>();
  for (;;) {
    const { stretches, erased } = await findSegments(source, session, gone);
    const turns = await readSegments(source, stretches, page);
    if (!('gone' in turns)) return { session, turns, origin_erased: erased };
    if (turns.gone === session) throw sessionErasedError();
    gone.add(turns.gone.session_id);
  }
}

/**
 * A session and a page of its turns, oldest first, after turn number `after`, with their texts. Of a
 * fork the turns come first that it shares, as far as they were not erased.
 * Errors: `session_not_found`, `session_erased`, `stream_damaged` (noted) where a text is not what was
 * closed, or its key was destroyed and no erasure says so; `key_missing`, `store_unavailable`.
 */
export async function readTranscript(
  source: TranscriptSource,
  accountId: string,
  sessionId: string,
  page: NumberedPage,
): Promise<Transcript> {
  const found = await source.readModels.findTranscript(accountId, sessionId, page);
  if (!found) throw sessionNotFound();
  const { session, turns } = found;
  if (session.status === 'erased') throw sessionErasedError();
  // Its own turns are read again, behind those that it shares: both are never held at once.
  if (session.forked_from) return readFork(source, session, page);
  if (!(await openTexts(source, session, turns.rows))) throw sessionErasedError();
  return { ...found, origin_erased: false };
}
