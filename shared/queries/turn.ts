import { ownerOf } from '../commands/erase/ownerOf.ts';
import { sessionErased } from '../erased.ts';
import { isTurnlogError, storeUnavailable, TurnlogError } from '../errors.ts';
import type { StreamSource } from '../eventlog/noteDamage.ts';
import { readPage } from '../eventlog/readWhole.ts';
import { isIdOf, sessionStream } from '../eventlog/streams.ts';
import type { KnownEvent } from '../eventlog/wholeStream.ts';
import { LIMITS } from '../limits.ts';
import type { ReadModels } from '../ports/readModels.ts';
import { turnAfter, type TurnEvent } from '../projections/projectTurn.ts';
import type { TurnRow } from '../readModels/tables.ts';
import { readTranscript } from './sessions.ts';

export type TurnSource = StreamSource & {
  readModels: Pick<ReadModels, 'findTranscript' | 'findSession' | 'findAgent' | 'findWebhook'>;
};

/** A turn of a session. */
interface TurnAt {
  session_id: string;
  turn: number;
}

/** A turn that the read models don't show yet is one of the last: so much is read back to it. */
const PAGE = 32;
const PAGES = 64;

const sessionNotFound = (): TurnlogError =>
  new TurnlogError('session_not_found', 'There is no such session.');
const turnNotFound = (): TurnlogError =>
  new TurnlogError('turn_not_found', 'The session has no such turn.');

/** The same where there is no such session and where it is another account's. */
const MAY_COME: readonly string[] = ['session_not_found', 'store_unavailable'];

/** Whether the session is the account's, as the log says. Errors: `session_not_found`, `store_unavailable`. */
export async function requireOwn(
  source: TurnSource,
  accountId: string,
  sessionId: string,
): Promise<void> {
  if (!isIdOf('session', sessionId)) throw sessionNotFound();
  if ((await ownerOf(source, sessionStream(sessionId))) !== accountId) throw sessionNotFound();
}

/** The turn as the read models show it, with its texts; undefined where they don't. */
async function shownTurn(
  source: TurnSource,
  accountId: string,
  { session_id, turn }: TurnAt,
): Promise<TurnRow | undefined> {
  const page = { after: turn - 1, limit: 1, bytes: LIMITS.http.pageBytes };
  try {
    const { turns } = await readTranscript(source, accountId, session_id, page);
    return turns.rows[0]?.turn === turn ? turns.rows[0] : undefined;
  } catch (error) {
    if (isTurnlogError(error) && MAY_COME.includes(error.code)) return undefined;
    throw error;
  }
}

/** The number of the turn that an event belongs to; undefined for one of the session itself. */
function turnOf({ event }: KnownEvent): number | undefined {
  const { turn } = event.data as { turn?: number };
  return turn;
}

/**
 * The turn as the log has it. Errors: `turn_not_found`, `session_erased`, `stream_damaged` (noted),
 * `release_too_old`, `key_missing`, `store_unavailable`.
 */
async function recordedTurn(source: StreamSource, { session_id, turn }: TurnAt): Promise<TurnRow> {
  const stream = sessionStream(session_id);
  const events: KnownEvent[] = [];
  let from: number | undefined;
  for (let pages = 0; pages < PAGES && from !== -1; pages += 1) {
    const page = await readPage(source, stream, {
      direction: 'backwards',
      ...(from !== undefined && { from }),
      limit: PAGE,
      maxBytes: LIMITS.store.pageBytes,
    });
    if (page.at(-1)?.event.type === 'session.erased.v1') throw sessionErased();
    events.unshift(...page.filter((known) => turnOf(known) === turn));
    if (events[0]?.event.type === 'session.turn_started.v1')
      return events.reduce<TurnRow | undefined>(
        (row, { recorded, event }) => turnAfter(row, recorded, event as TurnEvent),
        undefined,
      )!;
    if (page.length === 0 || page.some((known) => (turnOf(known) ?? turn) < turn)) break;
    from = page[0]!.recorded.revision - 1;
    if (pages === PAGES - 1)
      throw storeUnavailable('The read models do not show the turn yet, which is far back.');
  }
  throw turnNotFound();
}

/**
 * One turn of a session, with its texts: how it ended as soon as that is recorded, whether the read
 * models show it yet or not.
 * Errors: `session_not_found`, `turn_not_found`, `session_erased`, `stream_damaged` (noted),
 * `release_too_old`, `key_missing`, `store_unavailable`.
 */
export async function readTurn(
  source: TurnSource,
  accountId: string,
  at: TurnAt,
): Promise<TurnRow> {
  if (!isIdOf('session', at.session_id)) throw sessionNotFound();
  const shown = await shownTurn(source, accountId, at);
  // An end is never taken back.
  if (shown && shown.status !== 'running') return shown;
  if (!shown) await requireOwn(source, accountId, at.session_id);
  return recordedTurn(source, at).catch((error: unknown) => {
    // A node of a cluster that only follows may not have it yet.
    if (shown && isTurnlogError(error, 'turn_not_found')) return shown;
    throw error;
  });
}
