type Text = string | { text: string } | { erased: true };

interface Tokens {
  prompt: number;
  completion: number;
}

/** The part of an event of the API that a waterfall needs. */
export interface TurnEvent {
  revision: number;
  type: string;
  data: {
    turn?: number;
    round?: number;
    tool?: Text;
    is_error?: boolean;
    duration_ms?: number;
    calls?: readonly { model: string; tokens: Tokens; duration_ms: number }[];
  };
  metadata: { recorded_at: string };
}

/** A protected text of an event; undefined where it was erased. */
export const textOf = (text: Text): string | undefined =>
  typeof text === 'string' ? text : 'text' in text ? text.text : undefined;

/** Whether an event ends its turn. */
export const isEnd = ({ type }: { type: string }): boolean =>
  /\.turn_(completed|failed|interrupted)\./.test(type);

/** A model call or a tool call of a turn. Times are in milliseconds since the turn began. */
export interface Span {
  kind: 'model' | 'tool';
  name: string;
  startMs: number;
  durationMs: number;
  tokens?: Tokens;
  isError?: boolean;
}

/** The waterfall of a turn: its calls over time. */
export interface Waterfall {
  /** Revisions of the first and the last event of the turn. */
  revisions: readonly [number, number];
  durationMs: number;
  spans: Span[];
}

/**
 * The calls of a turn from its events, in order. The log has durations only: a model call follows
 * the tools of the round before it, and the tools of a round start together when it has ended.
 * Undefined without the start of the turn.
 */
export function waterfallOf(events: readonly TurnEvent[]): Waterfall | undefined {
  const started = events.find(({ type }) => type === 'session.turn_started.v1');
  if (!started) return undefined;
  const end = events.find(isEnd);
  const last = end ?? events.at(-1)!;
  const calls = end?.data.calls ?? [];
  const tools = events.flatMap(({ type, data }) => (type.includes('tool_called') ? [data] : []));
  const rounds = Math.max(calls.length, tools.at(-1)?.round ?? 0);
  const spans: Span[] = [];
  let ms = 0;
  for (let round = 1; round <= rounds; round += 1) {
    const call = calls[round - 1];
    if (call) {
      const { model: name, tokens, duration_ms: durationMs } = call;
      spans.push({ kind: 'model', name, startMs: ms, durationMs, tokens });
      ms += durationMs;
    }
    const startMs = ms;
    for (const { tool, duration_ms, is_error } of tools.filter((each) => each.round === round)) {
      const durationMs = duration_ms ?? 0;
      const name = textOf(tool!) ?? 'Erased tool';
      spans.push({ kind: 'tool', name, startMs, durationMs, isError: is_error === true });
      ms = Math.max(ms, startMs + durationMs);
    }
  }
  const [from, to] = [started, last].map(({ metadata }) => Date.parse(metadata.recorded_at));
  const durationMs = Math.max(end?.data.duration_ms ?? to! - from!, ms);
  return { revisions: [started.revision, last.revision], durationMs, spans };
}
