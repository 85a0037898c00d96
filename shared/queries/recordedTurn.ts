import type { ToolCalledData } from '../domain/session/events.ts';
import type { Round } from '../domain/session/turnPlace.ts';
import { resultOf, type RunResult } from '../commands/run/result.ts';
import { sessionErased } from '../erased.ts';
import { TurnlogError } from '../errors.ts';
import { readPage } from '../eventlog/readWhole.ts';
import type { StreamSource } from '../eventlog/noteDamage.ts';
import { sessionStream } from '../eventlog/streams.ts';
import type { KnownEvent } from '../eventlog/wholeStream.ts';
import { LIMITS } from '../limits.ts';
import type { ReadModels } from '../ports/readModels.ts';
import { turnAfter, type TurnEvent } from '../projections/projectTurn.ts';
import type { TurnRow } from '../readModels/tables.ts';
import { readTranscript } from './sessions.ts';

/** How a turn ended, as it is recorded. */
export type TurnEnd = { result: RunResult } | { failed: { code: string; message: string } };

/** A turn as it is recorded, as far as it has come. */
export interface RecordedTurn {
  rounds: Round[];
  /** Undefined while it is open. */
  end: TurnEnd | undefined;
  /** When its run gives up at the latest. */
  deadline: string;
}

export type TurnSource = StreamSource & { readModels: Pick<ReadModels, 'findTranscript'> };

const sessionNotFound = (): TurnlogError =>
  new TurnlogError('session_not_found', 'There is no such session.');
const turnNotFound = (): TurnlogError =>
  new TurnlogError('turn_not_found', 'The session has no such turn.');

const FIRST_PAGE = 12;
const LATER_PAGE = 64;

/** The number of the turn that an event belongs to; undefined for one of the session itself. */
const turnOf = ({ event }: KnownEvent): number | undefined =>
  (event.data as { turn?: number }).turn;

function roundsOf(calls: readonly ToolCalledData[], output: string | undefined): Round[] {
  const byRound = Map.groupBy(calls, ({ round }) => round);
  const rounds: Round[] = [];
  for (let round = 1; round <= (calls.at(-1)?.round ?? 0); round += 1) {
    const own = byRound.get(round) ?? [];
    rounds.push({ text: own[0]?.content ?? '', calls: own });
  }
  return output === undefined ? rounds : [...rounds, { text: output, calls: [] }];
}

/** How the turn ended that a row is of; undefined while it is open. */
function endOf(row: TurnRow): TurnEnd | undefined {
  const { session_id, status, output, tokens, error, context } = row;
  if (status === 'running') return undefined;
  // A turn that failed may have both as well.
  if (status === 'completed' && output !== null && tokens !== null) {
    const finish_reason = row.finish_reason ?? '';
    const completed = { ...row, output, tokens, finish_reason };
    return { result: resultOf(session_id, completed, context ?? undefined) };
  }
  const code = status === 'interrupted' ? 'turn_interrupted' : (error?.code ?? '');
  return { failed: { code, message: error?.message ?? '' } };
}

/** The turn that a row is of, which has its texts open. */
function fromRow(row: TurnRow): RecordedTurn {
  const calls = row.tool_calls.map((call) => ({ ...call, turn: row.turn }));
  return {
    rounds: roundsOf(calls, row.output ?? undefined),
    end: endOf(row),
    deadline: row.deadline,
  };
}

/** The same from its events, the first of which is its start. */
function fromEvents(events: readonly KnownEvent[]): RecordedTurn {
  const row = events.reduce<TurnRow | undefined>(
    (before, { recorded, event }) => turnAfter(before, recorded, event as TurnEvent),
    undefined,
  );
  return fromRow(row!);
}

/** What the read models show of a turn that has ended; undefined where they don't yet. */
async function shownTurn(
  source: TurnSource,
  { account_id, session_id }: { account_id: string; session_id: string },
  turn: number,
): Promise<RecordedTurn | undefined> {
  const page = { after: turn - 1, limit: 1, bytes: LIMITS.http.pageBytes };
  const { turns } = await readTranscript(source, account_id, session_id, page);
  const [row] = turns.rows;
  return row?.turn === turn && row.status !== 'running' ? fromRow(row) : undefined;
}

/**
 * A turn from the log, which has what is acknowledged at any time; an older one from the read models,
 * unless they are late. Errors: `session_not_found`, also for another account's, `turn_not_found`,
 * `session_erased`, `stream_damaged` (noted), `release_too_old`, `key_missing`, `store_unavailable`.
 */
export async function readTurn(
  source: TurnSource,
  subject: { account_id: string; session_id: string },
  turn: number,
): Promise<RecordedTurn> {
  const { account_id, session_id } = subject;
  const stream = sessionStream(session_id);
  const maxBytes = LIMITS.store.pageBytes;
  let events: KnownEvent[] = [];
  let from: number | undefined;
  for (let limit = FIRST_PAGE; ; limit = LATER_PAGE) {
    const place = from === undefined ? {} : { from };
    const options = { direction: 'backwards', limit, maxBytes, ...place } as const;
    const page = await readPage(source, stream, options);
    const last = page.at(-1);
    if (from === undefined) {
      if (last?.recorded.metadata.account_id !== account_id) throw sessionNotFound();
      if (last.event.type === 'session.erased.v1') throw sessionErased();
    }
    const newest = page.findLast((known) => turnOf(known) !== undefined);
    if (from === undefined && (newest ? turnOf(newest)! : 0) < turn) throw turnNotFound();
    events = [...page.filter((known) => turnOf(known) === turn), ...events];
    if (events[0]?.event.type === 'session.turn_started.v1') return fromEvents(events);
    const first = page[0]?.recorded.revision ?? 0;
    if (first === 0) throw turnNotFound();
    const shown = events.length === 0 ? await shownTurn(source, subject, turn) : undefined;
    if (shown) return shown;
    from = first - 1;
  }
}
