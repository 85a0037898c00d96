import type { ChatRequest } from './chat.ts';
import type { SessionCompactedData, SessionEvent, TurnStartedData } from '../events.ts';
import type { ModelCall } from './promptParts.ts';
import {
  chatRequest,
  compactionRequest,
  fallbackRequest,
  systemText,
  turnsFromEvents,
  type Summary,
  type Turn,
} from './prompt.ts';

/** What is recorded of the model calls of a turn, and of those that summed older turns up for it. */
export interface RecordedCalls {
  started: TurnStartedData;
  turn: Turn;
  /** Those that were answered; of a turn that is open, or was interrupted, none is recorded. */
  calls: readonly ModelCall[];
  /** Made right before the turn began. */
  compactions: readonly SessionCompactedData[];
}

/** A model call that was answered, and the body of its request. */
export interface RecordedCall {
  purpose: 'answer' | 'compaction';
  /** Which answered call of the turn it is, from 1; null of a compaction. */
  round: number | null;
  call: ModelCall;
  request: ChatRequest;
}

/** How an event names the summary that a request holds. */
export type SummaryReference = Pick<TurnStartedData, 'summary_revision' | 'summary_session_id'>;

/** What requests hold of before the turn. */
export interface PriorContext {
  /** Of the session, or else of the agent at the revision that the turn runs with. */
  instruction: string;
  /** The turns before it, oldest first, as far back as `oldestTurnOf` says. */
  turns: readonly Turn[];
  summaryOf: (named: SummaryReference) => Pick<Summary, 'text'> | undefined;
}

/** The number of the turn that an event belongs to; undefined for one of the session itself. */
export const turnNumberOf = ({ data }: Pick<SessionEvent, 'data'>): number | undefined =>
  'turn' in data ? data.turn : undefined;

/**
 * What consecutive events, oldest first, say of the model calls of a turn. They go back beyond its
 * start to an event of another turn, or to the session's beginning. Undefined where they do not have
 * its start.
 */
export function collectRecordedCalls(
  events: readonly SessionEvent[],
  number: number,
): RecordedCalls | undefined {
  const start = events.findIndex(
    ({ type, data }) => type === 'session.turn_started.v1' && data.turn === number,
  );
  const started = events[start];
  if (started?.type !== 'session.turn_started.v1') return undefined;
  const own = events.slice(start).filter((event) => turnNumberOf(event) === number);
  const end = own.at(-1)!;
  const before = events.slice(0, start);
  const idle = before.slice(before.findLastIndex((event) => turnNumberOf(event) !== undefined) + 1);
  return {
    started: started.data,
    turn: turnsFromEvents(own)[0]!,
    calls: 'calls' in end.data ? end.data.calls : [],
    compactions: idle.flatMap((event) =>
      event.type === 'session.compacted.v1' ? [event.data] : [],
    ),
  };
}

/** The oldest turn that the requests hold. */
export const oldestTurnOf = ({ started, compactions }: RecordedCalls): number =>
  Math.min(started.context_from_turn, ...compactions.map(({ from_turn }) => from_turn));

const recordedCall = (
  call: ModelCall,
  request: ChatRequest,
): Pick<RecordedCall, 'call' | 'request'> => ({
  call,
  request: call.fallback ? fallbackRequest(call.fallback, request) : request,
});

/**
 * The model calls of a turn in the order in which they were made, each with the exact body of its
 * request, from events alone: the rule that docs/replay.md tells.
 */
export function* rebuildRequests(
  { started, turn, calls, compactions }: RecordedCalls,
  { instruction, turns, summaryOf }: PriorContext,
): Generator<RecordedCall, void> {
  for (const compaction of compactions) {
    const { settings, from_turn, up_to_turn, call } = compaction;
    const older = turns.filter(
      (one) => one.output !== undefined && one.turn >= from_turn && one.turn <= up_to_turn,
    );
    const request = compactionRequest(settings, summaryOf(compaction), older);
    yield { purpose: 'compaction', round: null, ...recordedCall(call, request) };
  }
  const { settings, context, context_from_turn } = started;
  const summary = context?.compacted === undefined ? undefined : summaryOf(started);
  const history = turns.filter((one) => one.turn >= context_from_turn && one.turn < turn.turn);
  for (const [index, call] of calls.entries()) {
    const tool_calls = turn.tool_calls.filter(({ round }) => round <= index);
    const soFar = { ...turn, tool_calls, output: undefined };
    const request = chatRequest(settings, systemText(instruction, summary), history, soFar);
    yield { purpose: 'answer', round: index + 1, ...recordedCall(call, request) };
  }
}
