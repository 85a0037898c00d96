import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import { LIMITS } from '../../../../../shared/limits.ts';
import type { Battle } from '../attack.ts';
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

/**
 * One connection that asks and never reads, until it is cut. To see that, it asks again, or sends an
 * empty line during a response without an end.
 */
function deaf({ url, prey, signal }: Battle, path: string, isEndless = false): Promise<void> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname);
    const ask = (): void =>
      void socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\nx-api-key: ${prey.key}\r\n\r\n`);
    const askAgain = isEndless ? (): void => void socket.write('\r\n') : ask;
    const timer = setInterval(askAgain, ASK_AGAIN_MS);
    const end = (): void => void socket.destroy();
    signal.addEventListener('abort', end, { once: true });
    socket.on('connect', ask);
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

/** Clients that ask for the same and never read; whoever is cut comes again. */
export async function neverRead(battle: Battle): Promise<void> {
  const paths = largest(battle);
  await battle.clients(DEAF, async (_agent, client, turn) => {
    if (turn > 0) await countCut(battle);
    await deaf(battle, paths[client % paths.length]!);
  });
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
    await deaf(battle, path, !path.includes('jsonl'));
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
