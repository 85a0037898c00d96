import { randomUUID } from 'node:crypto';
import type { Agent } from 'node:http';
import type { Battle, Call } from '../attack.ts';

const CLIENTS = 8;
const LOADERS = 300;
/** As large as an instruction, an input and a name may be. */
const [INSTRUCTION, INPUT, NAME] = [87_000, 174_000, 256].map((count) => '\u6f22'.repeat(count));

/** The id in the answer to a creation. */
async function create(
  { call }: Battle,
  creation: Call,
  name: 'agent_id' | 'webhook_id' | 'session_id',
): Promise<string> {
  const answer = await call({ method: 'POST', ...creation });
  return new RegExp(`"${name}":"(\\w+)"`).exec(answer?.head ?? '')?.[1] ?? 'none';
}

/** Clients that change one agent, one webhook and one session again and again. */
export async function changeAgain(battle: Battle): Promise<void> {
  const { call, clients, prey } = battle;
  const agentBody = { name: 'A', instruction: 'Be brief.'.repeat(1_000), model: 'quick' };
  const agents = { path: '/v1/agents', body: JSON.stringify(agentBody) };
  const webhooks = { path: '/v1/webhooks', body: JSON.stringify({ url: 'http://127.0.0.1:9/' }) };
  const runs = {
    path: `/v1/agents/${prey.agents.quick}/run`,
    body: JSON.stringify({ input: 'hi' }),
  };
  const paths = [
    `/v1/agents/${await create(battle, agents, 'agent_id')}`,
    `/v1/webhooks/${await create(battle, webhooks, 'webhook_id')}`,
    `/v1/sessions/${await create(battle, runs, 'session_id')}`,
  ];
  const change = (turn: number, client: number): object[] => [
    { name: `${client}.${turn}` },
    turn % 2 === 0 ? { enabled: turn % 4 === 0 } : { url: `http://127.0.0.1:9/${client}/${turn}` },
    { title: `${client}.${turn}` },
  ];
  await clients(CLIENTS, (agent: Agent, client, turn) => {
    const at = (client + turn) % paths.length;
    const body = JSON.stringify(change(turn, client)[at]);
    return call({ method: 'PATCH', path: paths[at]!, body, agent });
  });
}

/**
 * Commands that read a large session, agent or account, and record next to nothing, over many
 * connections. Their requests and responses are small.
 */
export async function loadStreams(battle: Battle): Promise<void> {
  const { call, clients } = battle;
  const large = { name: 'A', instruction: INSTRUCTION, model: 'echo' };
  const agents = { path: '/v1/agents', body: JSON.stringify(large) };
  const path = `/v1/agents/${await create(battle, agents, 'agent_id')}`;
  const runs = { path: `${path}/run`, body: JSON.stringify({ input: 'hi' }) };
  const session_id = await create(battle, runs, 'session_id');
  const body = JSON.stringify({ session_id, input: INPUT });
  await call({ method: 'POST', path: runs.path, body });
  const session = `/v1/sessions/${session_id}`;
  const cancel = (): Call => ({ method: 'POST', path: `${session}/cancel` });
  const commands: readonly (() => Call)[] = [
    cancel,
    cancel,
    () => ({ ...cancel(), headers: { 'idempotency-key': randomUUID() } }),
    () => ({ method: 'POST', path: `${session}/fork`, body: '{"at_turn":999999}' }),
    () => ({ method: 'DELETE', path, headers: { 'if-match': '"none"' } }),
    () => ({
      method: 'POST',
      path: '/v1/keys',
      headers: { 'idempotency-key': randomUUID() },
      body: JSON.stringify({ name: NAME, scopes: ['events:read'] }),
    }),
  ];
  await clients(LOADERS, (agent, client, turn) =>
    call({ ...commands[(client + turn) % commands.length]!(), agent }),
  );
}
