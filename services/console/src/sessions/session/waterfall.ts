type Text = string | { text: string } | { erased: true };

export interface Tokens {
  prompt: number;
  completion: number;
  total: number;
}

interface ToolCalled {
  turn: number;
  round: number;
  tool: Text;
  duration_ms: number;
  is_error: boolean;
}

interface Ended {
  turn: number;
  calls: readonly { model: string; tokens: Tokens; duration_ms: number }[];
  tokens?: Tokens;
}

interface Recorded {
  revision: number;
  metadata: { recorded_at: string };
}

/** What a waterfall needs of the events of turns, as the API has them. */
export type TurnEvent = Recorded &
  (
    | { type: 'session.turn_started.v1'; data: { turn: number; model: string } }
    | { type: 'session.tool_called.v1'; data: ToolCalled }
    | { type: 'session.turn_completed.v1'; data: Ended & { tokens: Tokens; duration_ms: number } }
    | { type: 'session.turn_failed.v1'; data: Ended }
    | { type: 'session.turn_interrupted.v1'; data: { turn: number; reason: string } }
  );
type OtherEvent = Recorded & { type: string; data: object };

const isOfTurn = (event: TurnEvent | OtherEvent): event is TurnEvent => 'turn' in event.data;

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
  tokens: Tokens | undefined;
  isError: boolean;
}

/** What a turn did with its time. */
export interface Waterfall {
  turn: number;
  /** Revisions of the first and the last event of the turn. */
  revisions: readonly [number, number];
  durationMs: number;
  tokens: Tokens | undefined;
  /** Id of the model in the registry, whose price the tokens have. */
  model: string;
  spans: Span[];
}

const toolSpan = ({ tool, round, duration_ms, is_error }: ToolCalled, startMs: number): Span => ({
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
function waterfallOf(turn: number, events: readonly TurnEvent[]): Waterfall | undefined {
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
export function waterfalls(events: readonly (TurnEvent | OtherEvent)[]): Map<number, Waterfall> {
  const byTurn = Map.groupBy(events.filter(isOfTurn), ({ data }) => data.turn);
  const found = Array.from(byTurn, ([turn, ofTurn]) => waterfallOf(turn, ofTurn));
  return new Map(found.flatMap((each) => (each ? [[each.turn, each] as const] : [])));
}
