import {
  oldestTurnOf,
  recordedCalls,
  requestsOf,
  turnNumberOf,
  type RecordedCall,
  type RecordedCalls,
} from '../domain/session/requests.ts';
import { turnsOf } from '../domain/session/prompt.ts';
import type { SessionEvent } from '../domain/session/events.ts';
import { sessionErased } from '../erased.ts';
import { canonicalJson } from '../eventlog/canonicalJson.ts';
import { sha256 } from '../eventlog/hashChain.ts';
import { foundDamaged, type StreamSource } from '../eventlog/noteDamage.ts';
import { sessionStream } from '../eventlog/streams.ts';
import type { KnownEvent } from '../eventlog/wholeStream.ts';
import { giveWayForText } from '../giveWay.ts';
import type { Logger } from '../logger.ts';
import { bytesOf } from '../ports/eventStore.ts';
import type { PageOf } from '../ports/readModels.ts';
import { configurationAt } from './agentRevisions.ts';
import { historyBefore, summaryAt } from './sessionHistory.ts';
import type { NumberedPage } from './sessions.ts';
import { placeOfTurn, type TurnPlace } from './sessionAt.ts';
import { turnNotFound, type TurnAsked, type TurnSource } from './turn.ts';

/** A model call of a turn, with its request as the events come to it. */
export interface RebuiltRequest extends RecordedCall {
  /** Its place among those of the turn, from 1. */
  number: number;
  request_sha256: string;
  /** False where the events do not come to the request that was sent. */
  matches: boolean;
}

type RequestSource = TurnSource & { logger: Pick<Logger, 'warn'> };

type RequestsPage = NumberedPage & {
  /** Takes room for events of so many bytes, which are held until the requests are told. */
  hold: (bytes: number) => Promise<void>;
};

/** An event of the session, and where it stands in it. */
interface Placed {
  revision: number;
  event: SessionEvent;
}

/** What is read of a session for the requests of a turn. */
interface TurnHistory {
  events: readonly Placed[];
  recorded: RecordedCalls;
  /** Of the events, as they are stored. */
  bytes: number;
}

/** Without what is stored of them, and without what moves no prompt: a session may be described any number of times. */
const placed = (page: readonly KnownEvent[]): Placed[] =>
  page.flatMap(({ recorded: { revision }, event }) =>
    event.type === 'session.described.v1' ? [] : [{ revision, event: event as SessionEvent }],
  );

const eventsIn = (history: readonly Placed[]): SessionEvent[] => history.map(({ event }) => event);

/** The events of a turn, and those before it that its requests hold. Errors: also `turn_not_found`. */
async function historyOf(
  source: StreamSource,
  { session_id, turn }: TurnAsked,
  { revision }: TurnPlace,
  hold: RequestsPage['hold'],
): Promise<TurnHistory> {
  let events: Placed[] = [];
  let recorded: RecordedCalls | undefined;
  let bytes = 0;
  for await (const page of historyBefore(source, session_id, revision)) {
    const size = page.reduce((sum, { stored }) => sum + bytesOf(stored), 0);
    await hold(size);
    bytes += size;
    if (page.some(({ recorded: { erased } }) => erased)) throw sessionErased();
    events = [...placed(page), ...events];
    const known = eventsIn(events);
    recorded = recordedCalls(known, turn);
    const oldest = recorded ? oldestTurnOf(recorded) : turn;
    if (known.some((event) => (turnNumberOf(event) ?? oldest) < oldest)) break;
  }
  if (!recorded) throw turnNotFound();
  return { events, recorded, bytes };
}

/** The summaries that the requests hold, by the revisions of their events. Errors: those of readPage. */
async function summariesFor(
  source: StreamSource,
  sessionId: string,
  { events, recorded: { started, compactions } }: TurnHistory,
): Promise<Map<number, string>> {
  const summaries = new Map<number, string>();
  for (const { summary_revision } of [started, ...compactions]) {
    if (summary_revision === undefined || summaries.has(summary_revision)) continue;
    const event = events.find(({ revision }) => revision === summary_revision)?.event;
    const text =
      event?.type === 'session.compacted.v1'
        ? event.data.summary
        : await summaryAt(source, sessionId, summary_revision);
    if (text !== undefined) summaries.set(summary_revision, text);
  }
  return summaries;
}

/**
 * A page of the requests of a turn's model calls that were answered, each after its number, in the
 * order in which they were made, with the compaction that was made right before the turn: as its
 * events come to them, and whether those are the ones that were sent. One that is not is told to the
 * log.
 * Errors: `session_not_found`, also for another account's, `turn_not_found`, `session_erased`,
 * `agent_erased`, `stream_damaged` (noted), `release_too_old`, `key_missing`, `store_unavailable`;
 * those of `hold`.
 */
export async function readRequests(
  source: RequestSource,
  asked: TurnAsked,
  { hold, ...page }: RequestsPage,
): Promise<PageOf<RebuiltRequest>> {
  const { account_id, session_id, turn } = asked;
  const place = await placeOfTurn(source, asked);
  const history = await historyOf(source, asked, place, hold);
  const { events, recorded, bytes } = history;
  const summaries = await summariesFor(source, session_id, history);
  const { agent_id } = place;
  const { agent_revision } = recorded.started;
  const instruction =
    recorded.calls.length === 0
      ? ''
      : (await configurationAt(source, agent_id, agent_revision)).instruction;
  const made = requestsOf(recorded, {
    instruction,
    turns: turnsOf(eventsIn(events)),
    summaryAt: (revision) => {
      const text = revision === undefined ? undefined : summaries.get(revision);
      return text === undefined ? undefined : { text };
    },
  });
  const breathe = (): Promise<void> => giveWayForText(account_id, bytes);
  const found = await compared(made, page, breathe).catch(async (error: unknown) => {
    if (!(error instanceof SyntaxError)) throw error;
    const reason = `the form of the answer of turn ${turn} is no JSON`;
    throw await foundDamaged(source, sessionStream(session_id), { reason, revision: undefined });
  });
  const calls = found.rows.filter(({ matches }) => !matches).map(({ number }) => number);
  if (calls.length > 0)
    source.logger.warn(
      { session_id, turn, calls },
      'the events of a turn do not come to the requests that were sent',
    );
  return found;
}

/** A page of the requests, each with its hash. */
async function compared(
  made: Iterable<RecordedCall>,
  { after = 0, limit, bytes }: NumberedPage,
  breathe: () => Promise<void>,
): Promise<PageOf<RebuiltRequest>> {
  const rows: RebuiltRequest[] = [];
  let used = 0;
  let number = 0;
  for (const one of made) {
    number += 1;
    if (number <= after) continue;
    if (rows.length === limit) return { rows, more: true };
    await breathe();
    const text = canonicalJson(one.request);
    used += text.length;
    if (rows.length > 0 && used > bytes) return { rows, more: true };
    const request_sha256 = sha256(text);
    rows.push({
      ...one,
      number,
      request_sha256,
      matches: request_sha256 === one.call.request_sha256,
    });
  }
  return { rows, more: false };
}
