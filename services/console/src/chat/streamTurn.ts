import { ApiError } from '../api/apiError.ts';
import { readEvents } from '../api/client.ts';
import { applyTurnEvent, isOpen, type ChatTurn } from './thread/turnState.ts';

/** The pauses before a cut stream is opened again; the turn goes on meanwhile. */
const PAUSES_MS = [500, 1_000, 2_000, 4_000, 8_000];
/** Changes are shown at most this often. */
const FRAME_MS = 40;

/** The stream of a turn that was recorded, or the request that starts it. */
function open(agentId: string, turn: ChatTurn, signal: AbortSignal) {
  const { sessionId, number, lastEventId, input, key } = turn;
  if (number !== undefined) {
    const headers: HeadersInit = lastEventId === undefined ? {} : { 'last-event-id': lastEventId };
    return readEvents(`/v1/sessions/${sessionId}/turns/${number}/stream`, { signal, headers });
  }
  return readEvents(`/v1/agents/${encodeURIComponent(agentId)}/run`, {
    method: 'POST',
    signal,
    headers: { 'content-type': 'application/json', 'idempotency-key': key },
    body: JSON.stringify({ input, session_id: sessionId }),
  });
}

/** Whether the connection failed rather than the request. */
const isCut = (error: unknown, turn: ChatTurn): boolean =>
  !(error instanceof ApiError) ||
  error.status === 0 ||
  (turn.number !== undefined && error.retry === 'same_key');

const failed = (turn: ChatTurn, { code, message, retry }: ApiError): ChatTurn => ({
  ...turn,
  status: 'failed',
  failure: { code, message, retry },
});

const CONNECTION_LOST = new ApiError(0, {
  error: 'The connection was lost. The answer may go on without it.',
  code: 'unreachable',
  retry: 'same_key',
});

interface StreamOptions {
  agentId: string;
  onChange: (turn: ChatTurn) => void;
  signal: AbortSignal;
}

/**
 * Starts a turn, or continues to follow it, until it ends or `signal` aborts. A stream that was cut
 * continues after its last event. Because of the idempotency key no turn is started twice.
 */
export async function streamTurn(first: ChatTurn, options: StreamOptions): Promise<void> {
  const { agentId, signal, onChange } = options;
  let turn = first;
  let shownAt = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const show = (): void => {
    clearTimeout(timer);
    timer = undefined;
    shownAt = performance.now();
    if (!signal.aborted) onChange(turn);
  };
  for (let attempt = 0; !signal.aborted; attempt += 1) {
    try {
      for await (const { id, event, data } of open(agentId, turn, signal)) {
        turn = applyTurnEvent(turn, { id, event, data: JSON.parse(data) as unknown });
        attempt = 0;
        if (!isOpen(turn)) return show();
        timer ??= setTimeout(show, shownAt + FRAME_MS - performance.now());
      }
    } catch (error) {
      if (!signal.aborted && !isCut(error, turn)) turn = failed(turn, error as ApiError);
    }
    const ms = PAUSES_MS[attempt];
    if (ms === undefined) turn = failed(turn, CONNECTION_LOST);
    if (ms === undefined || !isOpen(turn)) return show();
    await new Promise((resolve) => setTimeout(resolve, ms));
  }
  return clearTimeout(timer);
}
