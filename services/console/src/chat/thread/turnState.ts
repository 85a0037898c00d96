/** A tool call as the API shows it. */
export interface ThreadToolCall {
  round: number;
  call_id: string;
  tool: string;
  arguments: string;
  result: string;
  is_error: boolean;
  duration_ms: number;
}

/** The output of one model call: its reasoning, its text, and then the calls that it asked for. */
export interface ThreadRound {
  reasoning: string;
  text: string;
  calls: readonly ThreadToolCall[];
}

export interface TurnFailure {
  code: string;
  message: string;
  /** `same_key`, `new_key` or `never`: what the API advises. */
  retry: string;
  requestId?: string | undefined;
}

/** A turn of a conversation: an input, and what has come of it so far. */
export interface ThreadTurn {
  /** The idempotency key that it was sent with; of a turn of the transcript, its number as text. */
  key: string;
  input: string;
  /** `sending` until the service has recorded the turn. */
  status: 'sending' | 'running' | 'completed' | 'failed' | 'interrupted';
  sessionId?: string | undefined;
  /** The number of the turn in its session, once the service has recorded it. */
  number?: number | undefined;
  rounds: readonly ThreadRound[];
  /** Where its stream continues, as `Last-Event-ID`. */
  lastEventId?: string | undefined;
  model?: string | undefined;
  tokens?: { prompt: number; completion: number; total: number } | undefined;
  finishReason?: string | undefined;
  failure?: TurnFailure | undefined;
}

/** An event of a turn's stream; `data` is parsed. */
export interface TurnEvent {
  event?: string | undefined;
  id?: string | undefined;
  data: unknown;
}

export const isOpen = ({ status }: ThreadTurn): boolean =>
  status === 'sending' || status === 'running';

/** `turn-round-chars`, then `-calls` or `-r` and the characters of the reasoning. */
const POSITION = /^\d+-(\d+)-(\d+)(?:-(\d+)|-r(\d+))?$/;

interface Position {
  round: number;
  chars: number;
  calls: number;
  reasoning: number;
}

function parsePosition(id: string | undefined): Position | undefined {
  const found = POSITION.exec(id ?? '');
  if (!found) return undefined;
  const [round, chars, calls, reasoning] = found.slice(1).map((digits) => Number(digits ?? 0));
  return { round: round!, chars: chars!, calls: calls!, reasoning: reasoning! };
}

/** The text with a part that ends at `end`, of which it may have some already. */
function appendPart(text: string, part: string, end = text.length + part.length): string {
  const isNew = end > text.length;
  return isNew ? text + part.slice(Math.max(text.length - (end - part.length), 0)) : text;
}

const EMPTY_ROUND: ThreadRound = { reasoning: '', text: '', calls: [] };

function changeRound(
  turn: ThreadTurn,
  number: number,
  change: (round: ThreadRound) => ThreadRound,
): ThreadTurn {
  const rounds = [...turn.rounds];
  while (rounds.length < number) rounds.push(EMPTY_ROUND);
  rounds[number - 1] = change(rounds[number - 1]!);
  return { ...turn, rounds };
}

interface Delta {
  round: number;
  text: string;
}

interface Completed {
  data: {
    output: string;
    metadata: {
      model: string;
      tokens: NonNullable<ThreadTurn['tokens']>;
      finish_reason: string;
    };
  };
}

interface Failed {
  error: string;
  code: string;
  retry: string;
  request_id?: string;
}

/** The rounds with the output that was recorded, where the stream did not have it. */
function withOutput(rounds: readonly ThreadRound[], output: string): readonly ThreadRound[] {
  const last = rounds.at(-1);
  if (last?.text === output) return rounds;
  if (!last || last.calls.length > 0) return [...rounds, { ...EMPTY_ROUND, text: output }];
  return [...rounds.slice(0, -1), { ...last, text: output }];
}

function applyContent(turn: ThreadTurn, { event, id, data }: TurnEvent): ThreadTurn {
  const at = parsePosition(id);
  switch (event) {
    case 'turn.started': {
      const { session_id: sessionId, turn: number } = data as { session_id: string; turn: number };
      return { ...turn, sessionId, number };
    }
    case 'reasoning.delta': {
      const { round, text } = data as Delta;
      return changeRound(turn, round, (old) => ({
        ...old,
        reasoning: appendPart(old.reasoning, text, at?.reasoning),
      }));
    }
    case 'output.delta': {
      const { round, text } = data as Delta;
      return changeRound(turn, round, (old) => ({
        ...old,
        text: appendPart(old.text, text, at?.chars),
      }));
    }
    case 'tool.called': {
      const call = data as ThreadToolCall;
      return changeRound(turn, call.round, (old) => {
        const isKnown = at
          ? at.calls <= old.calls.length
          : old.calls.some(({ call_id }) => call_id === call.call_id);
        return isKnown ? old : { ...old, calls: [...old.calls, call] };
      });
    }
    case 'turn.completed': {
      const { output, metadata } = (data as Completed).data;
      return {
        ...turn,
        status: 'completed',
        rounds: withOutput(turn.rounds, output),
        model: metadata.model,
        tokens: metadata.tokens,
        finishReason: metadata.finish_reason,
      };
    }
    case 'error': {
      const { error, code, retry, request_id } = data as Failed;
      const status = code === 'turn_interrupted' ? 'interrupted' : 'failed';
      return { ...turn, status, failure: { code, message: error, retry, requestId: request_id } };
    }
    default:
      // The API may send more kinds of events one day.
      return turn;
  }
}

/**
 * The turn after an event of its stream. Events that it has already, whole or in part, change
 * nothing; so a stream can be read again from any earlier event.
 */
export function applyTurnEvent(turn: ThreadTurn, event: TurnEvent): ThreadTurn {
  if (!isOpen(turn)) return turn;
  const next = applyContent({ ...turn, status: 'running', failure: undefined }, event);
  return event.id === undefined ? next : { ...next, lastEventId: event.id };
}

/** A turn as the transcript has it. */
export interface TranscriptTurn {
  turn: number;
  status: 'running' | 'completed' | 'failed' | 'interrupted';
  input: string;
  output: string | null;
  reasoning?: string | null | undefined;
  model: string;
  tool_calls: readonly (ThreadToolCall & { reasoning?: string | undefined })[];
  tokens: ThreadTurn['tokens'] | null;
  finish_reason: string | null;
  error: { code: string; message: string; retry: string } | null;
}

/** A turn of the transcript. An open one has no output: its stream has all of it, from the start. */
export function turnOfTranscript(sessionId: string, recorded: TranscriptTurn): ThreadTurn {
  const { turn: number, status, input, output, reasoning } = recorded;
  const base: ThreadTurn = { key: String(number), sessionId, number, input, status, rounds: [] };
  if (status === 'running') return base;
  const rounds: ThreadRound[] = [];
  for (const { reasoning: before, ...call } of recorded.tool_calls) {
    while (rounds.length < call.round) rounds.push(EMPTY_ROUND);
    const old = rounds[call.round - 1]!;
    const calls = [...old.calls, call];
    rounds[call.round - 1] = { ...old, calls, reasoning: before ?? old.reasoning };
  }
  if (output !== null || reasoning)
    rounds.push({ reasoning: reasoning ?? '', text: output ?? '', calls: [] });
  return {
    ...base,
    rounds,
    model: recorded.model,
    tokens: recorded.tokens ?? undefined,
    finishReason: recorded.finish_reason ?? undefined,
    failure: recorded.error ?? undefined,
  };
}

/** The turns with a changed one in its place, or with a new one at the end. */
export function putTurn(turns: readonly ThreadTurn[], turn: ThreadTurn): ThreadTurn[] {
  const index = turns.findIndex(({ key }) => key === turn.key);
  return index < 0 ? [...turns, turn] : turns.with(index, turn);
}

/** The turns after those of the transcript that come before them. */
export function putEarlier(
  turns: readonly ThreadTurn[],
  earlier: readonly ThreadTurn[],
): ThreadTurn[] {
  const known = new Set(turns.map(({ number }) => number));
  return [...earlier.filter(({ number }) => !known.has(number)), ...turns];
}
