export interface ChatToolCall {
  round: number;
  call_id: string;
  tool: string;
  arguments: string;
  result: string;
  is_error: boolean;
  duration_ms: number;
}

/** The output of one model call: its reasoning, its text, and then the calls that it asked for. */
export interface ChatRound {
  reasoning: string;
  text: string;
  calls: readonly ChatToolCall[];
}

/** A turn of a conversation: an input, and what has come of it so far. */
export interface ChatTurn {
  /** The idempotency key that it was sent with; of a turn of the transcript, its number as text. */
  key: string;
  input: string;
  /** `sending` until the service has recorded the turn. */
  status: 'sending' | 'running' | 'completed' | 'failed' | 'interrupted';
  sessionId: string | undefined;
  /** The number of the turn in its session, once the service has recorded it. */
  number?: number | undefined;
  rounds: readonly ChatRound[];
  /** Where its stream continues, as `Last-Event-ID`. */
  lastEventId?: string | undefined;
  model?: string | undefined;
  tokens?: { prompt: number; completion: number; total: number } | null | undefined;
  /** `retry` is what the API advises: `same_key`, `new_key` or `never`. */
  failure?: { code: string; message: string; retry: string } | null | undefined;
}

/** An event of a turn's stream; `data` is parsed. */
interface ChatEvent {
  event?: string | undefined;
  id?: string | undefined;
  data: unknown;
}

export const isOpen = ({ status }: ChatTurn): boolean =>
  status === 'sending' || status === 'running';

/** `turn-round-chars`, then `-calls` or `-r` and the characters of the reasoning. */
const POSITION = /^\d+-\d+-(\d+)(?:-(\d+)|-r(\d+))?$/;

/** The text with a part that ends at `end`, of which it may have some already. */
function appendPart(text: string, part: string, end = text.length + part.length): string {
  const missing = end - text.length;
  return missing > 0 ? text + part.slice(-missing) : text;
}

const EMPTY_ROUND: ChatRound = { reasoning: '', text: '', calls: [] };

function changeRound(rounds: readonly ChatRound[], number: number, changes: Partial<ChatRound>) {
  const next = [...rounds];
  while (next.length < number) next.push(EMPTY_ROUND);
  next[number - 1] = { ...next[number - 1]!, ...changes };
  return next;
}

/** The members of the data of events, each in those that have it. */
interface EventData extends ChatToolCall {
  session_id: string;
  turn: number;
  text: string;
  data: { output: string; metadata: Pick<ChatTurn, 'model' | 'tokens'> };
  error: string;
  code: string;
  retry: string;
}

function applyData(turn: ChatTurn, { event, id, data: given }: ChatEvent): ChatTurn {
  const data = (given ?? {}) as EventData;
  const at = POSITION.exec(id ?? '')?.map((digits) => Number(digits ?? 0));
  const round = turn.rounds[data.round - 1] ?? EMPTY_ROUND;
  const change = (changes: Partial<ChatRound>, number = data.round): ChatTurn => ({
    ...turn,
    rounds: changeRound(turn.rounds, number, changes),
  });
  switch (event) {
    case 'turn.started':
      return { ...turn, sessionId: data.session_id, number: data.turn };
    case 'reasoning.delta':
      return change({ reasoning: appendPart(round.reasoning, data.text, at?.[3]) });
    case 'output.delta':
      return change({ text: appendPart(round.text, data.text, at?.[1]) });
    case 'tool.called':
      return at && at[2]! <= round.calls.length ? turn : change({ calls: [...round.calls, data] });
    case 'turn.completed': {
      // The output is the text of the last model call, also where the stream did not have it.
      const number = turn.rounds.length + (turn.rounds.at(-1)?.calls.length === 0 ? 0 : 1);
      const { output: text, metadata } = data.data;
      const { model, tokens } = metadata;
      return { ...change({ text }, number), status: 'completed', model, tokens };
    }
    case 'error': {
      const { error: message, code, retry } = data;
      const status = code === 'turn_interrupted' ? 'interrupted' : 'failed';
      return { ...turn, status, failure: { code, message, retry } };
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
export function applyTurnEvent(turn: ChatTurn, event: ChatEvent): ChatTurn {
  if (!isOpen(turn)) return turn;
  const next = applyData({ ...turn, status: 'running', failure: undefined }, event);
  return { ...next, lastEventId: event.id ?? turn.lastEventId };
}

/** A turn as the transcript has it. */
export interface TranscriptTurn extends Pick<ChatTurn, 'input' | 'model' | 'tokens'> {
  turn: number;
  status: Exclude<ChatTurn['status'], 'sending'>;
  output: string | null;
  reasoning?: string | null | undefined;
  tool_calls: readonly (ChatToolCall & { reasoning?: string | undefined })[];
  error: ChatTurn['failure'];
}

/** A turn of the transcript. An open one has no output: its stream has all of it, from the start. */
export function turnOfTranscript(sessionId: string, recorded: TranscriptTurn): ChatTurn {
  const { turn: number, status, input, output, reasoning, model, tokens, error } = recorded;
  const key = String(number);
  if (status === 'running') return { key, sessionId, number, input, status, rounds: [] };
  let rounds: readonly ChatRound[] = [];
  for (const { reasoning: before, ...call } of recorded.tool_calls) {
    const old = rounds[call.round - 1] ?? EMPTY_ROUND;
    const calls = [...old.calls, call];
    rounds = changeRound(rounds, call.round, { calls, reasoning: before ?? old.reasoning });
  }
  if (output !== null || reasoning)
    rounds = [...rounds, { reasoning: reasoning ?? '', text: output ?? '', calls: [] }];
  return { key, sessionId, number, input, status, rounds, model, tokens, failure: error };
}

/** The turns with a changed one in its place, or with a new one at the end. */
export function putTurn(turns: readonly ChatTurn[], turn: ChatTurn): ChatTurn[] {
  const index = turns.findIndex(({ key }) => key === turn.key);
  return index < 0 ? [...turns, turn] : turns.with(index, turn);
}
