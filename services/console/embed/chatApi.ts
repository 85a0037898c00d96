import { EventSourceParserStream } from 'eventsource-parser/stream';

/** What the host of the page returns: the answer of Turnlog's `chat-tokens`, or the token alone. */
export type TokenAnswer =
  string | { token: string; agent_id?: string; data?: undefined } | { data: TokenAnswer };
export type GetToken = () => Promise<TokenAnswer>;

/** A turn of a session. */
export interface TurnRef {
  session_id: string;
  turn: number;
}

export interface ToolCall {
  round: number;
  tool: string;
  arguments: string;
  result: string;
  is_error: boolean;
}

interface Delta {
  round: number;
  text: string;
}

interface Failure {
  code: string;
  error: string;
}

/** An event of a turn's stream, and the loss of the connection before it is made again. */
export type TurnEvent =
  | { event: 'turn.started'; data: TurnRef }
  | { event: 'output.delta'; data: Delta }
  | { event: 'tool.called'; data: ToolCall }
  | { event: 'turn.completed'; data: { data: { output: string } } }
  | { event: 'error'; data: Failure }
  | { event: 'reconnecting' };

/** A turn of a transcript. */
export interface RecordedTurn {
  turn: number;
  status: 'running' | 'completed' | 'failed' | 'interrupted';
  input: string;
  output: string | null;
  tool_calls: ToolCall[];
  error: { code: string; reason?: string } | null;
}

export interface Transcript {
  turn_count: number;
  turns: RecordedTurn[];
}

/** `code` is that of the service, or `network`, `token` or `misconfigured`. */
export class ChatError extends Error {
  readonly code: string;
  /** The same request may succeed if it is sent again, after this many milliseconds. */
  readonly retryAfterMs: number | undefined;

  constructor(code: string, message: string, retryAfterMs?: number) {
    super(message);
    this.code = code;
    this.retryAfterMs = retryAfterMs;
  }
}

const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 8_000;
/** In a row, without an event in between. */
const MAX_FAILURES = 6;
/** A longer wait is an error: the person decides. */
const LONGEST_RETRY_AFTER_MS = 30_000;
const TURNS_SHOWN = 100;

const delay = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      reject(signal.reason as Error);
    });
  });

/** 128 random bits. `crypto.randomUUID` exists only on pages served over HTTPS. */
const randomKey = (): string =>
  [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, '0'))
    .join('');

/** The failure that a response tells. One that is not Turnlog's comes from a proxy. */
async function failureOf(response: Response): Promise<ChatError> {
  const { status, headers } = response;
  const body = (await response.json().catch(() => ({}))) as Partial<Failure> & { retry?: string };
  const isTransient = body.code === undefined ? status >= 500 : body.retry === 'same_key';
  const waitMs = Number(headers.get('retry-after') ?? 0) * 1_000;
  return new ChatError(
    body.code ?? (status >= 500 ? 'network' : 'failed'),
    body.error ?? `The service answered with status ${status}.`,
    isTransient && waitMs <= LONGEST_RETRY_AFTER_MS ? waitMs : undefined,
  );
}

const networkError = (cause: unknown): ChatError =>
  cause instanceof ChatError
    ? cause
    : new ChatError('network', `The service could not be reached: ${String(cause)}`, 0);

function unwrap(answer: TokenAnswer): { token: string; agent_id?: string } {
  if (typeof answer === 'string') return { token: answer };
  if (answer?.data !== undefined) return unwrap(answer.data);
  if (typeof answer?.token === 'string') return answer;
  throw new ChatError('misconfigured', 'The token endpoint returned no token.');
}

export interface ChatApiOptions {
  /** The base URL of the service. */
  server: string;
  /** Undefined where the answer with the token names the agent. */
  agent: string | undefined;
  getToken: GetToken;
}

/** The part of Turnlog's API that a chat token allows. */
export interface ChatApi {
  /** The events of a turn to its end, over lost connections and expired tokens. */
  follow(start: TurnRef | NewTurn, signal: AbortSignal): AsyncGenerator<TurnEvent>;
  /** The newest turns of a session; undefined for a session that the token may not read. */
  readTranscript(session_id: string, signal: AbortSignal): Promise<Transcript | undefined>;
  cancel(turn: TurnRef): Promise<void>;
}

export interface NewTurn {
  input: string;
  session_id: string | undefined;
}

export function createChatApi({ server, agent, getToken }: ChatApiOptions): ChatApi {
  const base = server.replace(/\/+$/, '');
  let current: Promise<{ token: string; agent_id?: string }> | undefined;

  const requestToken = async (): Promise<{ token: string; agent_id?: string }> => {
    try {
      return unwrap(await getToken());
    } catch (error) {
      current = undefined;
      throw error instanceof ChatError ? error : new ChatError('token', String(error));
    }
  };

  /** Sends a request with the token, and once more with a fresh one where it is not valid any more. */
  async function send(
    path: (agent_id: string) => string,
    { headers, ...init }: { headers?: Record<string, string> } & Omit<RequestInit, 'headers'>,
  ): Promise<Response> {
    for (let attempt = 0; ; attempt += 1) {
      const { token, agent_id } = await (current ??= requestToken());
      const id = agent ?? agent_id;
      if (id === undefined) throw new ChatError('misconfigured', 'The attribute agent is missing.');
      const response = await fetch(base + path(encodeURIComponent(id)), {
        ...init,
        headers: { ...headers, authorization: `Bearer ${token}` },
        credentials: 'omit',
        referrerPolicy: 'no-referrer',
        cache: 'no-store',
      });
      if (response.status !== 401) return response;
      current = undefined;
      if (attempt > 0) throw new ChatError('token', 'The service refused a new token.');
    }
  }

  const turnPath = ({ session_id, turn }: TurnRef): string =>
    `/v1/sessions/${encodeURIComponent(session_id)}/turns/${turn}`;

  async function* readEvents(response: Response): AsyncGenerator<TurnEvent & { id?: string }> {
    const reader = response
      .body!.pipeThrough(new TextDecoderStream())
      .pipeThrough(new EventSourceParserStream())
      .getReader();
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        const { id, event, data } = value;
        yield { ...(id !== undefined && { id }), event, data: JSON.parse(data) } as TurnEvent;
      }
    } finally {
      await reader.cancel().catch(() => undefined);
    }
  }

  const JSON_HEADERS = { 'content-type': 'application/json' };

  async function* follow(start: TurnRef | NewTurn, signal: AbortSignal): AsyncGenerator<TurnEvent> {
    // A repeated request with the same key starts no second turn.
    const key = randomKey();
    let turn = 'turn' in start ? start : undefined;
    let lastId: string | undefined;
    let failures = 0;

    const connect = (): Promise<Response> => {
      const accept = 'text/event-stream';
      if (turn) {
        const headers = { accept, ...(lastId !== undefined && { 'last-event-id': lastId }) };
        return send(() => `${turnPath(turn!)}/stream`, { headers, signal });
      }
      const headers = { ...JSON_HEADERS, accept, 'idempotency-key': key };
      const body = JSON.stringify(start);
      return send((id) => `/v1/agents/${id}/run`, { method: 'POST', headers, body, signal });
    };

    for (;;) {
      let retryAfterMs = 0;
      try {
        const response = await connect();
        if (!response.ok) throw await failureOf(response);
        for await (const { id, ...event } of readEvents(response)) {
          failures = 0;
          if (id !== undefined) lastId = id;
          if (event.event === 'turn.started') turn = event.data;
          yield event;
          if (event.event === 'turn.completed' || event.event === 'error') return;
        }
        // The connection was lost, or the token has expired.
      } catch (error) {
        signal.throwIfAborted();
        const failure = networkError(error);
        if (failure.retryAfterMs === undefined || failures >= MAX_FAILURES) throw failure;
        ({ retryAfterMs } = failure);
        yield { event: 'reconnecting' };
      }
      if (failures >= MAX_FAILURES)
        throw new ChatError('network', 'The stream ends without its last event.');
      const backoffMs = failures === 0 ? 0 : FIRST_DELAY_MS * 2 ** (failures - 1);
      await delay(Math.max(retryAfterMs, Math.min(backoffMs, LONGEST_DELAY_MS)), signal);
      failures += 1;
    }
  }

  return {
    follow,
    async readTranscript(session_id, signal) {
      const path = `/v1/sessions/${encodeURIComponent(session_id)}`;
      const read = async (query: string): Promise<Transcript | undefined> => {
        const response = await send(() => path + query, { signal });
        if (response.status === 404 || response.status === 410) return undefined;
        if (!response.ok) throw await failureOf(response);
        return ((await response.json()) as { data: Transcript }).data;
      };
      try {
        const first = await read(`?limit=${TURNS_SHOWN}`);
        if (!first || first.turn_count <= TURNS_SHOWN) return first;
        return await read(`?limit=${TURNS_SHOWN}&after=${first.turn_count - TURNS_SHOWN}`);
      } catch (error) {
        signal.throwIfAborted();
        throw networkError(error);
      }
    },
    async cancel({ session_id, turn }) {
      const path = `/v1/sessions/${encodeURIComponent(session_id)}/cancel`;
      const body = JSON.stringify({ turn });
      const response = await send(() => path, { method: 'POST', headers: JSON_HEADERS, body });
      if (!response.ok) throw await failureOf(response);
    },
  };
}
