import type { Battle, Call } from '../attack.ts';

const AT_ONCE = 20;
const KIB = 1_024;
const HALF_MIB = 512 * KIB;

/** With names as short as they can be, so that the body is not refused for its size. */
const unknownFields = (): string =>
  JSON.stringify(
    Object.fromEntries(Array.from({ length: 100_000 }, (_, at) => [`_${at.toString(36)}`, 0])),
  );
const nested = (depth: number): string => `${'['.repeat(depth)}${']'.repeat(depth)}`;
const agentWith = (fields: object): string =>
  JSON.stringify({ name: 'x', instruction: 'x', model: 'quick', ...fields });

/** Bodies that cost more to refuse, or to work on, than to send. */
function bodies({ prey }: Battle): Call[] {
  const create = (body: string): Call => ({ method: 'POST', path: '/v1/agents', body });
  const run = (input: string, model: 'narrow' | 'quick' = 'narrow'): Call => ({
    method: 'POST',
    path: `/v1/agents/${prey.agents[model]}/run`,
    body: JSON.stringify({ input }),
  });
  return [
    create(unknownFields()),
    { ...run(''), body: unknownFields() },
    create(nested(500_000)),
    create(`{"a":`.repeat(150_000) + '1' + '}'.repeat(150_000)),
    create(agentWith({ name: nested(100_000) })),
    create(agentWith({ instruction: Array.from({ length: 200_000 }, () => 0) })),
    create(`{${'"name":"x",'.repeat(80_000)}"name":"x"}`),
    create('x'.repeat(KIB * KIB)),
    run('a'.repeat(HALF_MIB)),
    run(`${'a'.repeat(255)} `.repeat(2 * KIB)),
    run('\u{1f600}'.repeat(HALF_MIB / 4)),
    run('\u6f22'.repeat(HALF_MIB / 3 - 1)),
    run('7'.repeat(HALF_MIB)),
    run('\u0001'.repeat(170_000)),
    run('word '.repeat(HALF_MIB / 5)),
    run('a'.repeat(HALF_MIB), 'quick'),
    run('\n'.repeat(HALF_MIB), 'quick'),
  ].map((call) => ({ ...call, body: Buffer.from(call.body!) }));
}

/** So many of them at a time, all kinds in turn. */
export async function costlyBodies(battle: Battle): Promise<void> {
  const calls = bodies(battle);
  await battle.clients(AT_ONCE, (agent, client, turn) =>
    battle.call({ ...calls[(client + turn) % calls.length]!, agent }),
  );
}

/** The one that the service was seen to stand still over: 100,000 unknown fields, and no other. */
export async function unknownFieldsOnly(battle: Battle): Promise<void> {
  const body = Buffer.from(unknownFields());
  await battle.clients(AT_ONCE, (agent) =>
    battle.call({ method: 'POST', path: '/v1/agents', body, agent }),
  );
}
