import type { Schema } from '../../api/client.ts';

type SessionEvent = Schema<'SessionEvent'>;
type Text = Schema<'DisclosedText'> | Schema<'ErasedText'> | string;

/** A protected text of an event; undefined where it was erased. */
export const textOf = (text: Text): string | undefined =>
  typeof text === 'string' ? text : 'text' in text ? text.text : undefined;

/** A model call or a tool call of a turn. Times are in milliseconds since the turn began. */
export interface Span {
  kind: 'model' | 'tool';
  name: string;
  round: number;
  startMs: number;
  durationMs: number;
  tokens: Schema<'Tokens'> | undefined;
  isError: boolean;
}

/** What a turn did with its time. */
export interface Waterfall {
  turn: number;
  /** Revisions of the first and the last event of the turn. */
  revisions: readonly [number, number];
  durationMs: number;
  tokens: Schema<'Tokens'> | undefined;
  /** Id of the model in the registry, whose price the tokens have. */
  model: string;
  spans: Span[];
}

/** The turn that an event belongs to, if it belongs to one. */
const turnOf = ({ data }: SessionEvent): number | undefined =>
  'turn' in data ? data.turn : undefined;

const toolSpan = (
  { tool, round, duration_ms, is_error }: Schema<'SessionToolCalledV1Data'>,
  startMs: number,
): Span => ({
  kind: 'tool',
  name: textOf(tool) ?? 'Erased tool',
  round,
  startMs,
  durationMs: duration_ms,
  tokens: undefined,
  isError: is_error,
});

/**
 * The calls of a turn from its events, in order. The log has durations only: a model call follows
 * the tools of the round before it, and the tools of a round start together when it has ended.
 * Undefined without the start of the turn.
 */
function waterfallOf(turn: number, events: readonly SessionEvent[]): Waterfall | undefined {
  const started = events.find((event) => event.type === 'session.turn_started.v1');
  if (!started) return undefined;
  const end = events.find(({ data }) => 'calls' in data || 'reason' in data);
  const calls = end && 'calls' in end.data ? end.data.calls : [];
  const tools = events.flatMap((event) =>
    event.type === 'session.tool_called.v1' ? [event.data] : [],
  );
  const rounds = Math.max(calls.length, tools.at(-1)?.round ?? 0);
  const spans: Span[] = [];
  let ms = 0;
  for (let round = 1; round <= rounds; round += 1) {
    const call = calls[round - 1];
    if (call) {
      const { model, duration_ms: durationMs, tokens } = call;
      spans.push({
        kind: 'model',
        name: model,
        round,
        startMs: ms,
        durationMs,
        tokens,
        isError: false,
      });
      ms += durationMs;
    }
    const ofRound = tools.filter((tool) => tool.round === round).map((tool) => toolSpan(tool, ms));
    spans.push(...ofRound);
    ms = Math.max(ms, ...ofRound.map(({ startMs, durationMs }) => startMs + durationMs));
  }
  const recordedMs =
    Date.parse((end ?? events.at(-1)!).metadata.recorded_at) -
    Date.parse(started.metadata.recorded_at);
  const durationMs = end && 'duration_ms' in end.data ? end.data.duration_ms : recordedMs;
  return {
    turn,
    revisions: [started.revision, (end ?? events.at(-1)!).revision],
    durationMs: Math.max(durationMs, ms),
    tokens: end && 'tokens' in end.data ? end.data.tokens : undefined,
    model: started.data.model,
    spans,
  };
}

/** The waterfalls of the turns in a part of an event history, by turn. */
export function waterfalls(events: readonly SessionEvent[]): Map<number, Waterfall> {
  const byTurn = Map.groupBy(events, (event) => turnOf(event) ?? 0);
  byTurn.delete(0);
  const found = Array.from(byTurn, ([turn, ofTurn]) => waterfallOf(turn, ofTurn));
  return new Map(found.flatMap((each) => (each ? [[each.turn, each] as const] : [])));
}
