import { ApiError } from '../api/apiError.ts';
import { readEvents } from '../api/client.ts';
import { applyTurnEvent, isOpen, type ThreadTurn } from './thread/turnState.ts';

/** The pauses before a cut stream is opened again; the turn goes on meanwhile. */
const PAUSES_MS = [500, 1_000, 2_000, 4_000, 8_000];
/** Changes are shown at most this often. */
const FRAME_MS = 40;

interface StreamOptions {
  agentId: string;
  onChange: (turn: ThreadTurn) => void;
  signal: AbortSignal;
}

/** The stream of a turn that was recorded, or the request that starts it. */
function open(turn: ThreadTurn, { agentId, signal }: StreamOptions) {
  const { sessionId, number, lastEventId, input, key } = turn;
  if (sessionId !== undefined && number !== undefined)
    return readEvents(`/v1/sessions/${sessionId}/turns/${number}/stream`, {
      signal,
      headers: lastEventId === undefined ? {} : { 'last-event-id': lastEventId },
    });
  return readEvents(`/v1/agents/${encodeURIComponent(agentId)}/run`, {
    method: 'POST',
    signal,
    headers: { 'content-type': 'application/json', 'idempotency-key': key },
    body: JSON.stringify({ input, ...(sessionId !== undefined && { session_id: sessionId }) }),
  });
}

/** Whether the connection failed rather than the request. */
const isCut = (error: unknown, turn: ThreadTurn): boolean =>
  !(error instanceof ApiError) ||
  error.status === 0 ||
  (turn.number !== undefined && error.retry === 'same_key');

const failed = (turn: ThreadTurn, error: ApiError): ThreadTurn => ({
  ...turn,
  status: 'failed',
  failure: {
    code: error.code,
    message: error.message,
    retry: error.retry,
    requestId: error.requestId,
  },
});

const CONNECTION_LOST = new ApiError(0, {
  error: 'The connection was lost. The answer may go on without it.',
  code: 'unreachable',
  retry: 'same_key',
});

const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });

/**
 * Starts a turn, or continues to follow it, until it ends or `signal` aborts. A stream that was cut
 * continues after its last event. Because of the idempotency key no turn is started twice.
 */
export async function streamTurn(first: ThreadTurn, options: StreamOptions): Promise<void> {
  const { signal, onChange } = options;
  let turn = first;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const show = (): void => {
    clearTimeout(timer);
    timer = undefined;
    if (!signal.aborted) onChange(turn);
  };
  for (let attempt = 0; !signal.aborted; attempt += 1) {
    try {
      for await (const { id, event, data } of open(turn, options)) {
        const wasKnown = turn.number !== undefined;
        turn = applyTurnEvent(turn, { id, event, data: JSON.parse(data) as unknown });
        attempt = 0;
        if (!isOpen(turn) || !wasKnown) show();
        else timer ??= setTimeout(show, FRAME_MS);
        if (!isOpen(turn)) return;
      }
    } catch (error) {
      if (!signal.aborted && !isCut(error, turn)) {
        turn = failed(turn, error as ApiError);
        return show();
      }
    }
    const ms = PAUSES_MS[attempt];
    if (ms === undefined) {
      turn = failed(turn, CONNECTION_LOST);
      return show();
    }
    await pause(ms, signal);
  }
  clearTimeout(timer);
  return undefined;
}
