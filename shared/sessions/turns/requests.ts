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
import { applyRequestForm } from './requestForm.ts';

/** The recorded model calls of a turn, and those of compactions for it. */
export interface RecordedCalls {
  started: TurnStartedData;
  turn: Turn;
  /** Answered calls. Turns that are open or were interrupted have none. */
  calls: readonly ModelCall[];
  /** Compactions right before the turn. */
  compactions: readonly SessionCompactedData[];
}

/** An answered model call and the body of its request. */
export interface RecordedCall {
  purpose: 'answer' | 'compaction';
  /** Number of the answered call within the turn, from 1; null for a compaction. */
  round: number | null;
  call: ModelCall;
  request: ChatRequest;
}

/** The reference to the summary in a request. */
export type SummaryReference = Pick<TurnStartedData, 'summary_revision' | 'summary_session_id'>;

/** The content of requests from before the turn. */
interface PriorContext {
  /** The session's instruction, or else that of the agent at the turn's revision. */
  instruction: string;
  /** The turns before this one, oldest first, back to the one that `oldestTurnOf` returns. */
  turns: readonly Turn[];
  summaryOf: (named: SummaryReference) => Pick<Summary, 'text'> | undefined;
}

/** The turn number of an event; undefined for an event of the session itself. */
export const turnNumberOf = ({ data }: Pick<SessionEvent, 'data'>): number | undefined =>
  'turn' in data ? data.turn : undefined;

/**
 * Collects the recorded model calls of a turn from its events and the compactions right before it,
 * oldest first. Undefined if they do not include the start of the turn.
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
  const ownEvents = events.slice(start).filter((event) => turnNumberOf(event) === number);
  const end = ownEvents.at(-1)!;
  const before = events.slice(0, start);
  const idle = before.slice(before.findLastIndex((event) => turnNumberOf(event) !== undefined) + 1);
  return {
    started: started.data,
    turn: turnsFromEvents(ownEvents)[0]!,
    calls: 'calls' in end.data ? end.data.calls : [],
    compactions: idle.flatMap((event) =>
      event.type === 'session.compacted.v1' ? [event.data] : [],
    ),
  };
}

/** The oldest turn that the requests contain. */
export const oldestTurnOf = ({ started, compactions }: RecordedCalls): number =>
  Math.min(started.context_from_turn, ...compactions.map(({ from_turn }) => from_turn));

const recordedCall = (
  call: ModelCall,
  request: ChatRequest,
): Pick<RecordedCall, 'call' | 'request'> => ({
  call,
  request: applyRequestForm(
    call.form ?? {},
    call.fallback ? fallbackRequest(call.fallback, request) : request,
  ),
});

/**
 * Yields the model calls of a turn in the order they were made, each with the exact body of its
 * request, built only from events. docs/replay.md describes this rule.
 */
export function* rebuildRequests(
  { started, turn, calls, compactions }: RecordedCalls,
  { instruction, turns, summaryOf }: PriorContext,
): Generator<RecordedCall, void> {
  for (const compaction of compactions) {
    const { settings, from_turn, up_to_turn, call } = compaction;
    const older = turns.filter(
      (earlier) =>
        earlier.output !== undefined && earlier.turn >= from_turn && earlier.turn <= up_to_turn,
    );
    const request = compactionRequest(settings, summaryOf(compaction), older);
    yield { purpose: 'compaction', round: null, ...recordedCall(call, request) };
  }
  const { settings, context, context_from_turn } = started;
  const summary = context?.compacted === undefined ? undefined : summaryOf(started);
  const history = turns.filter(
    (earlier) => earlier.turn >= context_from_turn && earlier.turn < turn.turn,
  );
  for (const [index, call] of calls.entries()) {
    const tool_calls = turn.tool_calls.filter(({ round }) => round <= index);
    const soFar = { ...turn, tool_calls, output: undefined };
    const request = chatRequest(settings, systemText(instruction, summary), history, soFar);
    yield { purpose: 'answer', round: index + 1, ...recordedCall(call, request) };
  }
}
