import { ApiError, readApiError } from '../src/api/apiError.ts';
import type { Schema } from '../src/api/client.ts';
import { eventsIn } from '../src/api/eventStream.ts';
import { newIdempotencyKey } from '../src/api/idempotencyKey.ts';

type Token = { token: string; agent_id?: string };
/** The response of the page's host: that of `chat-tokens`, its `data`, or the token alone. */
export type GetToken = () => Promise<string | Token | { data: Token }>;
export type TurnRef = Schema<'TurnStarted'>;
/** An event of a turn's stream, or the loss of its connection before it is opened again. */
type ChatEvent = Schema<'TurnStreamEvent'> | { event: 'reconnecting' };

/** Before a stream is opened again; without an event in between, it is an error then. */
const PAUSES_MS = [0, 500, 1_000, 2_000, 4_000, 8_000];
/** A longer wait is an error: the person decides. */
const LONGEST_RETRY_AFTER_MS = 30_000;
const TURNS_SHOWN = 100;

/** An error of the component itself: `network`, `token` or `misconfigured`. */
export const chatError = (code: string, error: string, cause?: unknown): ApiError =>
  new ApiError(0, { code, error, retry: code === 'network' ? 'same_key' : 'never' }, cause);

const post = (body: object, headers?: Record<string, string>) => ({
  method: 'POST',
  headers: { ...headers, 'content-type': 'application/json' },
  body: JSON.stringify(body),
});

/** Whether the same request may succeed later. A failure without a code is that of a proxy. */
const isTransient = ({ retry, code, status }: ApiError): boolean =>
  retry === 'same_key' || (code === 'unknown' && status >= 500);

/** The part of the API that a chat token allows. `agent` may be absent where the token names it. */
export function createChatApi(server: string, agent: string | null, getToken: GetToken) {
  let current: Promise<Token> | undefined;

  async function requestToken(): Promise<Token> {
    try {
      const answer = await getToken();
      const token = typeof answer === 'string' ? { token: answer } : answer;
      return 'data' in token ? token.data : token;
    } catch (error) {
      current = undefined;
      throw error instanceof ApiError ? error : chatError('token', String(error), error);
    }
  }

  /** Sends a request, and once more with a fresh token where the service refuses the one before. */
  async function send(
    path: (agent_id: string) => string,
    { headers, ...init }: Omit<RequestInit, 'headers'> & { headers?: Record<string, string> },
  ): Promise<Response> {
    for (let attempt = 0; attempt < 2; attempt += 1) {
      const { token, agent_id = agent } = await (current ??= requestToken());
      if (!agent_id) throw chatError('misconfigured', 'The attribute agent is missing.');
      const response = await fetch(server.replace(/\/+$/, '') + path(agent_id), {
        ...init,
        headers: { ...headers, authorization: `Bearer ${token}` },
        credentials: 'omit',
        referrerPolicy: 'no-referrer',
        cache: 'no-store',
      }).catch((error: unknown) => {
        throw chatError('network', String(error), error);
      });
      if (response.status !== 401) return response;
      current = undefined;
    }
    throw chatError('token', 'The service refused a new token.');
  }

  return {
    /** The events of a new turn, or of one that has begun, over lost connections and ended tokens. */
    async *follow(
      start: TurnRef | { input: string; session_id: string | undefined },
      signal: AbortSignal,
    ): AsyncGenerator<ChatEvent> {
      const accept = 'text/event-stream';
      // A repeated request with the same key starts no second turn.
      const key = newIdempotencyKey();
      let turn = 'turn' in start ? start : undefined;
      let lastId: string | undefined;
      for (let attempt = 0; ; attempt += 1) {
        let waitMs = 0;
        try {
          const path = turn && `/v1/sessions/${turn.session_id}/turns/${turn.turn}/stream`;
          const init = path
            ? { headers: { accept, ...(lastId !== undefined && { 'last-event-id': lastId }) } }
            : post(start, { accept, 'idempotency-key': key });
          const response = await send((id) => path ?? `/v1/agents/${id}/run`, { ...init, signal });
          waitMs = Number(response.headers.get('retry-after') ?? 0) * 1_000;
          if (!response.ok) throw await readApiError(response);
          for await (const { id, event, data } of eventsIn(response)) {
            attempt = 0;
            lastId = id ?? lastId;
            const heard = { event, data: JSON.parse(data) } as Schema<'TurnStreamEvent'>;
            if (heard.event === 'turn.started') turn = heard.data;
            yield heard;
            if (heard.event === 'turn.completed' || heard.event === 'error') return;
          }
          // The connection was closed, or the token has expired.
        } catch (error) {
          const isFinal = error instanceof ApiError && !isTransient(error);
          if (signal.aborted || isFinal || waitMs > LONGEST_RETRY_AFTER_MS) throw error;
          yield { event: 'reconnecting' };
        }
        const pauseMs = PAUSES_MS[attempt];
        if (pauseMs === undefined) throw chatError('network', 'The connection was lost.');
        await new Promise((resolve) => setTimeout(resolve, Math.max(waitMs, pauseMs)));
        signal.throwIfAborted();
      }
    },
    /** The newest turns of a session; undefined for a session that the token may not read. */
    async readTranscript(
      session_id: string,
      signal: AbortSignal,
    ): Promise<Schema<'Transcript'> | undefined> {
      const read = async (query: string): Promise<Schema<'Transcript'> | undefined> => {
        const path = `/v1/sessions/${encodeURIComponent(session_id)}?limit=${TURNS_SHOWN}${query}`;
        const response = await send(() => path, { signal });
        if (response.status === 404 || response.status === 410) return undefined;
        if (!response.ok) throw await readApiError(response);
        return ((await response.json()) as { data: Schema<'Transcript'> }).data;
      };
      const first = await read('');
      const skipped = (first?.turn_count ?? 0) - TURNS_SHOWN;
      return skipped > 0 ? read(`&after=${skipped}`) : first;
    },
    async cancel({ session_id, turn }: TurnRef): Promise<void> {
      const response = await send(() => `/v1/sessions/${session_id}/cancel`, post({ turn }));
      if (!response.ok) throw await readApiError(response);
    },
  };
}
