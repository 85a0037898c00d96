import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import { LIMITS } from '../../../../../shared/limits.ts';
import { jsonHeaders, type Battle } from '../attack.ts';
import { size } from '../../../jest/size.ts';

const READERS = 64;
const DEAF = size({ small: 120, full: 500 });
const DEAF_FOLLOWERS = size({ small: 60, full: 250 });
const WRITERS = 2;
const CURSORS = 16;
/** A client asks once more over the same connection this often, which shows whether it was cut. */
const ASK_AGAIN_MS = 1_000;

const largest = ({ prey }: Battle): string[] => [
  '/v1/agents',
  `/v1/sessions/${prey.session}?limit=1000`,
  `/v1/sessions/${prey.session}/events?limit=1000`,
];

/** What each client accepts: two of three as it is, the others compressed. */
const ENCODINGS = ['identity', 'gzip', 'identity', 'br'];

/** Clients that read the largest answers there are at full speed, to the last page. */
export async function readLargest(battle: Battle): Promise<void> {
  const paths = largest(battle);
  const next = new Map<number, string>();
  await battle.clients(READERS, async (agent, client) => {
    const path = next.get(client) ?? paths[client % paths.length]!;
    next.delete(client);
    const headers = { 'accept-encoding': ENCODINGS[client % ENCODINGS.length]! };
    const answer = await battle.call({ path, headers, agent });
    const link = /^<([^>]+)>/.exec(String(answer?.headers['link'] ?? ''))?.[1];
    if (link !== undefined) next.set(client, link);
  });
}

/** The text of a request. */
const asText = (line: string, headers: Record<string, string>, body = ''): string =>
  [
    `${line} HTTP/1.1`,
    'host: x',
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    `content-length: ${body.length}`,
    '',
    body,
  ].join('\r\n');

interface DeafClient {
  /** What it sends again, to see whether it was cut: the request, unless its response has no end. */
  again?: string;
  /** How much it reads each time, at the most. */
  bytes?: number;
}

/** One connection that asks, and reads nothing or some bytes a second, until it is cut. */
function deaf(
  { url, signal }: Battle,
  request: string,
  { again = request, bytes = 0 }: DeafClient = {},
): Promise<void> {
  const { hostname, port } = new URL(url);
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname);
    if (bytes > 0) socket.pause();
    const send = (text: string): void => {
      socket.write(text);
      if (bytes > 0) socket.read(bytes);
    };
    const timer = setInterval(send, ASK_AGAIN_MS, again);
    const end = (): void => void socket.destroy();
    signal.addEventListener('abort', end, { once: true });
    socket.on('connect', () => send(request));
    socket.on('error', () => undefined);
    socket.on('close', () => {
      clearInterval(timer);
      signal.removeEventListener('abort', end);
      resolve();
    });
  });
}

/** Counts a connection that was cut, and waits before the next one. */
async function countCut({ report, pause }: Battle): Promise<void> {
  report.answers['cut'] = (report.answers['cut'] ?? 0) + 1;
  await pause(100);
}

/** Clients that do not read what they ask for. One that is cut comes again. */
const askUnread = (battle: Battle, requests: readonly string[], bytes?: number) =>
  battle.clients(DEAF, async (_agent, client, turn) => {
    if (turn > 0) await countCut(battle);
    await deaf(battle, requests[client % requests.length]!, bytes === undefined ? {} : { bytes });
  });

const getText = ({ prey }: Battle, path: string): string =>
  asText(`GET ${path}`, jsonHeaders(prey.key));

/** Clients that ask for the same and never read. */
export async function neverRead(battle: Battle): Promise<void> {
  await askUnread(
    battle,
    largest(battle).map((path) => getText(battle, path)),
  );
}

/** Clients that change an agent and repeat a run, and hardly read the large responses. */
export async function hardlyRead(battle: Battle): Promise<void> {
  const { call, prey } = battle;
  const large = { name: 'A', instruction: '\u0001'.repeat(163_000), model: 'quick' };
  const created = await call({ method: 'POST', path: '/v1/agents', body: JSON.stringify(large) });
  const id = /"agent_id":"(\w+)"/.exec(created?.head ?? '')?.[1];
  const headers = jsonHeaders(prey.key);
  const run = `POST /v1/agents/${prey.agents.large}/run`;
  const requests = [
    asText(`PATCH /v1/agents/${id}`, headers, '{}'),
    asText(run, { ...headers, 'idempotency-key': 'again' }, '{"input":"160000"}'),
  ];
  // The connection itself takes the first responses.
  await askUnread(
    battle,
    requests.map((request) => request.repeat(4)),
    512,
  );
}

/** Large events, and clients that follow them and never read: old and new ones, and pages of both. */
export async function neverReadEvents(battle: Battle): Promise<void> {
  const paths = ['/v1/events', '/v1/events?from=now', '/v1/events?format=jsonl&limit=1000'];
  const run = {
    method: 'POST',
    path: `/v1/agents/${battle.prey.agents.quick}/run`,
    // One character beyond Latin-1 doubles the memory of the text.
    body: JSON.stringify({ input: `\u0101${'x'.repeat(LIMITS.text.inputBytes - 2)}` }),
  } as const;
  await battle.clients(WRITERS + DEAF_FOLLOWERS, async (agent, client, turn) => {
    if (client < WRITERS) {
      await battle.call({ ...run, agent });
      return;
    }
    if (turn > 0) await countCut(battle);
    const path = paths[client % paths.length]!;
    const again = path.includes('jsonl') ? {} : { again: '\r\n' };
    await deaf(battle, getText(battle, path), again);
  });
}

const LETTERS = '0123456789abcdefghjkmnpqrstvwxyz';
/** The id of an agent that nobody has. */
const strangeId = (): string =>
  `agent_01${Array.from(randomBytes(24), (byte) => LETTERS[byte % 32]).join('')}`;
const PADDING = 14_500;

/** Requests that are each unlike all before them, and all as long as a request may be. */
const VARIED: readonly ((text: string) => { path: string; headers?: Record<string, string> })[] = [
  () => ({ path: `/v1/agents?limit=1&after=${strangeId()}${'&'.repeat(PADDING)}` }),
  () => ({ path: `/v1/agents?limit=1&after=${strangeId()}` }),
  (text) => ({ path: `/v1/agents?limit=1&pretty=${text}` }),
  (text) => ({ path: '/v1/agents?limit=1', headers: { 'x-request-id': text.slice(0, 128) } }),
  (text) => ({ path: '/v1/agents?limit=1', headers: { 'if-none-match': `"${text}"` } }),
  (text) => ({ path: '/v1/agents?limit=1', headers: { 'accept-encoding': text, origin: text } }),
  (text) => ({ path: '/v1/agents', headers: { 'x-api-key': text } }),
  (text) => ({ path: `/v1/sessions?limit=1&agent_id=${text.slice(0, 200)}` }),
  (text) => ({ path: `/v1/agents/${text}` }),
  (text) => ({ path: `/openapi.json?${text}` }),
];

/** Half of the clients send the first kind alone; nobody waits. */
export async function varyQueries({ clients, call }: Battle): Promise<void> {
  await clients(CURSORS, (agent, client, turn) => {
    const vary = VARIED[client < CURSORS / 2 ? 0 : turn % VARIED.length]!;
    return call({ ...vary(randomBytes(3_000).toString('hex')), agent });
  });
}
