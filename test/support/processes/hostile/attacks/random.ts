import { once } from 'node:events';
import { request as httpRequest, type Agent, type IncomingMessage } from 'node:http';
import { apiFeatures } from '../../../../../services/api/features.ts';
import { jsonHeaders, type Battle, type Call } from '../attack.ts';
import { HEADERS, QUERY, type Mix, type MixClient } from '../mix.ts';

/** The variable with the mix, as JSON. */
export const MIX = 'TURNLOG_HOSTILE_MIX';

const STRANGE = '01kahz0b2re5v8k2s4n6t8w0y2';
/** How slowly a slow reader reads: so many bytes at a time, and how long it does. */
const SLOWLY = { bytes: 1_024, everyMs: 100, forMs: 30_000 };

/** Ids of what the attackers made: only that is changed or erased. */
type Own = Record<'agent' | 'session' | 'webhook' | 'replay', string | undefined>;

const DESTRUCTIVE = /^(put|patch|delete) |\/erase$/;

function parameter(name: string, { ids, route, model }: MixClient, own: Own, prey: Battle['prey']) {
  if (ids === 'malformed') return encodeURIComponent('\u{1f600}/..'.repeat(100));
  if (name === 'turn') return ids === 'strange' ? '999999999' : '1';
  if (name === 'level') return '0';
  if (name === 'index') return ids === 'strange' ? '999' : '000';
  const kind = (name === 'subjectId' ? 'session' : name.replace('Id', '')) as keyof Own;
  const strange = `${kind}_${STRANGE}`;
  if (ids === 'strange') return strange;
  if (ids === 'largest' && !DESTRUCTIVE.test(route)) {
    if (kind === 'agent') return prey.agents[model];
    if (kind === 'session') return prey.session;
  }
  return own[kind] ?? strange;
}

function pathOf(client: MixClient, own: Own, prey: Battle['prey']): string {
  const [method, template] = client.route.split(' ') as [string, string];
  const route = apiFeatures.routes.find((one) => one.method === method && one.path === template);
  const known = Object.keys(route?.query?.properties ?? {});
  const query = client.query.filter((name) => known.includes(name));
  const path = template.replace(/\{(\w+)\}/g, (_, name: string) =>
    parameter(name, client, own, prey),
  );
  return `${path}?${query.map((name) => `${name}=${QUERY[name]}`).join('&')}`;
}

/** A body that the route takes, if its text is not too large. */
function validBody({ route, bytes, model }: MixClient, own: Own, turn: number): object {
  const text = 'word '.repeat(Math.ceil(bytes / 5));
  const agent = { name: 'x', instruction: text, model };
  const BODIES: Readonly<Record<string, object>> = {
    'post /v1/agents': agent,
    'put /v1/agents/{agentId}': agent,
    'patch /v1/agents/{agentId}': { instruction: text },
    'post /v1/agents/{agentId}/run': {
      input: text,
      ...(turn % 2 === 1 && own.session !== undefined && { session_id: own.session }),
    },
    'patch /v1/sessions/{sessionId}': { title: text.slice(0, 256), labels: { a: String(turn) } },
    'post /v1/sessions/{sessionId}/fork': { at_turn: 1 },
    'post /v1/replays': {
      sessions: [own.session ?? `session_${STRANGE}`],
      tools: 'recorded',
      instruction: text,
      budget: { tokens: 100_000 },
    },
    'post /v1/webhooks': { url: `https://[3ffe::1]/${turn}` },
    'patch /v1/webhooks/{webhookId}': { url: `https://[3ffe::1]/${turn}` },
  };
  return BODIES[route] ?? {};
}

function bodyOf(client: MixClient, own: Own, turn: number): string | undefined {
  const { body, bytes, route } = client;
  if (body === 'none' || route.startsWith('get ')) return undefined;
  if (body === 'garbage') return 'x'.repeat(bytes);
  if (body === 'nested') return '['.repeat(bytes);
  if (body === 'valid') return JSON.stringify(validBody(client, own, turn));
  const names = Array.from({ length: Math.ceil(bytes / 10) }, (_, at) => [`_${at}`, 0]);
  return JSON.stringify(Object.fromEntries(names));
}

function callOf(client: MixClient, own: Own, { prey }: Battle, turn: number): Call {
  const body = bodyOf(client, own, turn);
  return {
    method: client.route.split(' ')[0]!.toUpperCase() as NonNullable<Call['method']>,
    path: pathOf(client, own, prey),
    headers: Object.assign({}, ...client.headers.map((name) => HEADERS[name])),
    ...(body !== undefined && { body }),
    ...(client.abortMs !== null && { signal: AbortSignal.timeout(client.abortMs) }),
  };
}

/** Reads some bytes at a time, or nothing; ends after a while. */
async function dawdle(response: IncomingMessage, read: MixClient['read']): Promise<void> {
  const until = performance.now() + SLOWLY.forMs;
  const timer = setInterval(() => {
    if (read === 'slowly') response.read(SLOWLY.bytes);
    if (performance.now() > until) response.destroy();
  }, SLOWLY.everyMs);
  response.on('readable', () => undefined);
  await once(response, 'close').finally(() => clearInterval(timer));
}

/** Sends a request whose answer is read slowly or never. */
async function sendAndDawdle(battle: Battle, call: Call, read: MixClient['read'], agent: Agent) {
  const { hostname, port } = new URL(battle.url);
  const { method, path, body } = call;
  const headers = { ...jsonHeaders(battle.prey.key), ...call.headers };
  const signal = call.signal ? AbortSignal.any([battle.signal, call.signal]) : battle.signal;
  const sent = httpRequest({ hostname, port, method, path, headers, agent, signal });
  sent.on('error', () => undefined);
  const { answers } = battle.report;
  let kind = 'cut';
  try {
    sent.end(body);
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    kind = String(response.statusCode);
    await dawdle(response, read);
  } catch {
    await battle.pause(20);
  } finally {
    answers[kind] = (answers[kind] ?? 0) + 1;
  }
}

/** Notes the ids of what was made. */
function remember(own: Own, head: string): void {
  for (const kind of Object.keys(own) as (keyof Own)[]) {
    const [, id] = new RegExp(`"${kind}_id":"(\\w+)"`).exec(head) ?? [];
    if (id !== undefined) own[kind] = id;
  }
}

/** Nobody looks for what is deleted or erased by this path. */
function forget({ report }: Battle, path: string): void {
  for (const kind of ['agents', 'sessions'] as const)
    report[kind] = report[kind].filter((id) => !path.includes(id));
}

/** The mix in the environment: all its clients at once. */
export async function randomMix(battle: Battle): Promise<void> {
  const mix = JSON.parse(process.env[MIX]!) as Mix;
  const { call, clients, prey } = battle;
  const own: Own = { agent: undefined, session: undefined, webhook: undefined, replay: undefined };
  const create = { name: 'x', instruction: 'x', model: 'quick' };
  const make = async (path: string, body: object): Promise<void> => {
    const answer = await call({ method: 'POST', path, body: JSON.stringify(body) });
    if (answer?.status === 200) remember(own, answer.head);
  };
  await make('/v1/agents', create);
  await make(`/v1/agents/${own.agent ?? prey.agents.quick}/run`, { input: 'hi' });

  const kind = (client: MixClient): Promise<void> =>
    clients(client.clients, async (agent, _client, turn) => {
      const next = callOf(client, own, battle, turn);
      if (DESTRUCTIVE.test(client.route)) forget(battle, next.path);
      if (client.read !== 'all') return sendAndDawdle(battle, next, client.read, agent);
      const answer = await call({ ...next, agent });
      if (answer && next.method === 'POST') remember(own, answer.head);
    });
  await Promise.all(mix.map(kind));
}
