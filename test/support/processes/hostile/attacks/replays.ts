import { randomUUID } from 'node:crypto';
import type { Agent } from 'node:http';
import { connect } from 'node:net';
import { LIMITS } from '../../../../../shared/limits.ts';
import { jsonHeaders, type Battle } from '../attack.ts';
import { size } from '../../../jest/size.ts';

const SESSIONS = size({ small: 60, full: LIMITS.replays.sessions });
const MAKERS = 16;
const STARTERS = 24;
const CANCELLERS = 4;
const READERS = 8;
const FOLLOWERS = size({ small: 150, full: 1_000 });
const RETRY_MS = 100;
/** When a follower that does not stay leaves. */
const LEAVE_MS = 200;

/** What the table counts apart. */
export const STARTED_AGAIN = '202 of an earlier start';
export const FOLLOWED_TO_END = '200 replay.ended';

/** As large as an instruction may be; in JSON, and decoded, it is larger. */
const INSTRUCTION = '\u6f22'.repeat(Math.floor(LIMITS.text.instructionBytes / 3));

const count = ({ report: { answers } }: Battle, kind: string): void => {
  answers[kind] = (answers[kind] ?? 0) + 1;
};

/** So many sessions of one small turn. */
async function makeSessions(battle: Battle): Promise<string[]> {
  const { call, prey } = battle;
  const path = `/v1/agents/${prey.agents.quick}/run`;
  const made: string[] = [];
  const make = async (): Promise<void> => {
    while (made.length < SESSIONS && !battle.signal.aborted) {
      const answer = await call({ method: 'POST', path, body: '{"input":"hi"}' });
      const [, id] = /"session_id":"(session_\w+)"/.exec(answer?.head ?? '') ?? [];
      if (id === undefined) await battle.pause(RETRY_MS);
      else made.push(id);
    }
  };
  await Promise.all(Array.from({ length: MAKERS }, make));
  return made.slice(0, SESSIONS);
}

/** Follows a replay, and reads to the end of the stream, for a moment, or nothing. */
async function follow(battle: Battle, id: string, how: number): Promise<void> {
  const { url, prey, signal } = battle;
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  const leave = (): void => void socket.destroy();
  signal.addEventListener('abort', leave, { once: true });
  socket.on('error', () => undefined);
  const headers = {
    host: 'x',
    connection: 'close',
    'last-event-id': '0',
    ...jsonHeaders(prey.key),
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`GET /v1/replays/${id}/stream HTTP/1.1\r\n${lines.join('')}\r\n`);
  let tail = '';
  if (how > 0)
    socket.setEncoding('latin1').on('data', (text: string) => {
      tail = (tail + text).slice(-2_000);
    });
  const timer = how === 1 ? setTimeout(leave, LEAVE_MS) : undefined;
  await new Promise((resolve) => socket.once('close', resolve));
  clearTimeout(timer);
  signal.removeEventListener('abort', leave);
  if (/\nevent: replay\.ended\n/.test(tail)) count(battle, FOLLOWED_TO_END);
  await battle.pause(RETRY_MS);
}

/**
 * Starts of the largest replays with keys that are shared, new or missing; clients that follow the
 * replays from their beginning, leave and come again, or never read; reads, and cancellations once no
 * other replay can be started.
 */
export async function startReplays(battle: Battle): Promise<void> {
  const { call, clients, pause } = battle;
  const sessions = await makeSessions(battle);
  const settings = { sessions, concurrency: LIMITS.replays.concurrency, instruction: INSTRUCTION };
  const body = JSON.stringify(settings);
  const running: string[] = [];
  let latest = '';
  let isFull = false;
  let shared = 0;

  async function start(agent: Agent, key: string | undefined): Promise<void> {
    const headers = key === undefined ? {} : { 'idempotency-key': key };
    const answer = await call({ method: 'POST', path: '/v1/replays', headers, body, agent });
    const [, id] = /"replay_id":"(replay_\w+)"/.exec(answer?.head ?? '') ?? [];
    if (answer?.status === 409) isFull = true;
    if (id === undefined) return pause(RETRY_MS);
    latest = id;
    if (answer?.headers['idempotency-replayed'] !== 'true') return void running.push(id);
    count(battle, STARTED_AGAIN);
    if (key === String(shared)) shared += 1;
  }

  async function cancelOldest(agent: Agent, client: number, turn: number): Promise<void> {
    const id = isFull ? running.shift() : undefined;
    if (id === undefined) return pause(RETRY_MS);
    isFull = false;
    const headers = client % 2 === 0 ? { 'idempotency-key': `${turn}` } : {};
    await call({ method: 'POST', path: `/v1/replays/${id}/cancel`, headers, agent });
  }

  const keys = [() => String(shared), randomUUID, () => String(shared), () => undefined];
  await Promise.all([
    clients(STARTERS, (agent, client, turn) =>
      start(agent, keys[(client + turn) % keys.length]!()),
    ),
    clients(CANCELLERS, cancelOldest),
    clients(READERS, (agent, client, turn) => {
      const paths = ['?limit=1000', `/${latest}?limit=100`, `/${latest}/sessions?limit=1000`];
      const path = paths[(client + turn) % paths.length];
      return latest === '' ? pause(RETRY_MS) : call({ path: `/v1/replays${path}`, agent });
    }),
    clients(FOLLOWERS, (_agent, client) =>
      latest === '' ? pause(RETRY_MS) : follow(battle, latest, client % 3),
    ),
  ]);
}
