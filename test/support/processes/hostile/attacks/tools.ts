import type { Battle } from '../attack.ts';

const CLIENTS = 16;
/** What `^(a+)+$` takes forever to reject. */
const SLOW_TEXT = `${'a'.repeat(60)}!`;
const HEALTH_EVERY_MS = 500;

/** Creates an agent whose model repeats its input; undefined where the service refuses that. */
async function createEcho(battle: Battle, fields: object): Promise<string | undefined> {
  const body = JSON.stringify({ name: 'a', instruction: 'b', model: 'echo', ...fields });
  const answer = await battle.call({ method: 'POST', path: '/v1/agents', body });
  return /"agent_id":"(\w+)"/.exec(answer?.head ?? '')?.[1];
}

/** Counts the servers that are away, as if they were answers: `mcp floods-logs away`. */
async function watchServers({ url, signal, report, pause }: Battle): Promise<void> {
  while (!signal.aborted) {
    const response = await fetch(`${url}/health/ready`, { signal }).catch(() => undefined);
    const { data } = ((await response?.json().catch(() => undefined)) ?? {}) as {
      data?: { tool_servers?: { name: string; state: string }[] };
    };
    for (const { name, state } of data?.tool_servers ?? [])
      report.answers[`mcp ${name} ${state}`] = (report.answers[`mcp ${name} ${state}`] ?? 0) + 1;
    await pause(HEALTH_EVERY_MS);
  }
}

/** Runs whose tool calls need a slow pattern, while MCP servers flood and change their schemas. */
export async function hostileTools(battle: Battle): Promise<void> {
  const agent_id = await createEcho(battle, { tool: 'mcp:patterns' });
  const body = JSON.stringify({ input: JSON.stringify({ a: SLOW_TEXT }) });
  const path = `/v1/agents/${agent_id}/run`;
  await Promise.all([
    watchServers(battle),
    battle.clients(CLIENTS, (agent, client) =>
      client % 4 === 0
        ? battle.call({ path: '/v1/tools', agent })
        : battle.call({ method: 'POST', path, body, agent }),
    ),
  ]);
}

/** Runs whose answers take as long to check as the service allows. */
export async function slowSchemas(battle: Battle): Promise<void> {
  const schema = { type: 'string', pattern: '^(a+)+$' };
  const response_format = { type: 'json_schema', json_schema: { name: 'slow', schema } };
  const agent_id = await createEcho(battle, { response_format });
  const body = JSON.stringify({ input: JSON.stringify(SLOW_TEXT) });
  const path = `/v1/agents/${agent_id}/run`;
  await battle.clients(CLIENTS, (agent) => battle.call({ method: 'POST', path, body, agent }));
}
