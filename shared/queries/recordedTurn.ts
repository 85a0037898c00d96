import type { SessionEvent, ToolCalledData } from '../domain/session/events.ts';
import type { TurnContext } from '../domain/session/parts.ts';
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
import { INTERRUPTIONS } from '../projections/projectTurn.ts';
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

type TurnEvent = Extract<SessionEvent, { data: { turn: number } }>;

const isOfTurn = (event: KnownEvent['event']): event is TurnEvent =>
  typeof (event.data as { turn?: unknown }).turn === 'number';

function roundsOf(calls: readonly ToolCalledData[], output: string | undefined): Round[] {
  const byRound = Map.groupBy(calls, ({ round }) => round);
  const rounds: Round[] = [];
  for (let round = 1; round <= (calls.at(-1)?.round ?? 0); round += 1) {
    const own = byRound.get(round) ?? [];
    rounds.push({ text: own[0]?.content ?? '', calls: own });
  }
  return output === undefined ? rounds : [...rounds, { text: output, calls: [] }];
}

/** A turn from its events, the first of which is its start. */
function fromEvents(session_id: string, events: readonly TurnEvent[]): RecordedTurn {
  const calls: ToolCalledData[] = [];
  let output: string | undefined;
  let end: TurnEnd | undefined;
  let deadline = '';
  let context: TurnContext | undefined;
  for (const { type, data } of events) {
    if (type === 'session.turn_started.v1') ({ deadline, context } = data);
    else if (type === 'session.tool_called.v1') calls.push(data);
    else if (type === 'session.turn_completed.v1') {
      ({ output } = data);
      end = { result: resultOf(session_id, data, context) };
    } else if (type === 'session.turn_failed.v1')
      end = { failed: { code: data.code, message: data.message } };
    else
      end = {
        failed: { code: 'turn_interrupted', message: INTERRUPTIONS[data.cause ?? data.reason] },
      };
  }
  return { rounds: roundsOf(calls, output), end, deadline };
}

/** The same from its row, which has its texts open. */
function fromRow(row: TurnRow): RecordedTurn {
  const { turn, session_id, output, tokens, model, tool_used, status, error, deadline } = row;
  const calls = row.tool_calls.map((call) => ({ ...call, turn }));
  const completed = output !== null && tokens !== null;
  const end: TurnEnd = completed
    ? {
        result: resultOf(
          session_id,
          { output, model, tool_used, tokens, finish_reason: row.finish_reason ?? '' },
          row.context ?? undefined,
        ),
      }
    : {
        failed: {
          code: status === 'interrupted' ? 'turn_interrupted' : (error?.code ?? ''),
          message: error?.message ?? '',
        },
      };
  return { rounds: roundsOf(calls, completed ? output : undefined), end, deadline };
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
  let events: TurnEvent[] = [];
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
    const found = page.map(({ event }) => event).filter(isOfTurn);
    const newest = found.at(-1)?.data.turn ?? 0;
    if (from === undefined && newest < turn) throw turnNotFound();
    events = [...found.filter(({ data }) => data.turn === turn), ...events];
    if (events[0]?.type === 'session.turn_started.v1') return fromEvents(session_id, events);
    const first = page[0]?.recorded.revision ?? 0;
    if (first === 0) throw turnNotFound();
    const shown = events.length === 0 ? await shownTurn(source, subject, turn) : undefined;
    if (shown) return shown;
    from = first - 1;
  }
}
