import type { Battle } from '../attack.ts';
import { size } from '../../../jest/size.ts';
import type { ModelName } from '../world.ts';

const RUNS = size({ small: 400, full: 1_000 });
const CLIENTS = 64;
/** Half of the clients wait as they are told, the others come again at once. */
const IMPATIENT_MS = 250;

const runOf = ({ prey }: Battle, model: ModelName): string =>
  `/v1/agents/${prey.agents[model]}/run`;

/** Large inputs for a slow model, as many at a time as there are clients. */
export async function floodSlowModel(battle: Battle): Promise<void> {
  const body = Buffer.from(JSON.stringify({ input: 'word '.repeat(102_400) }));
  const path = runOf(battle, 'slow');
  await battle.clients(RUNS, async (agent, client) => {
    const answer = await battle.call({ method: 'POST', path, body, agent });
    if (answer?.status === 200) return;
    const told = Number(answer?.headers['retry-after'] ?? 1) * 1_000;
    await battle.pause(client % 2 === 0 ? told : IMPATIENT_MS);
  });
}

const runAgain = (models: readonly ModelName[], clients: number) => async (battle: Battle) => {
  const body = JSON.stringify({ input: 'What is 1+1?' });
  await battle.clients(clients, (agent, client) => {
    const path = runOf(battle, models[client % models.length]!);
    return battle.call({ method: 'POST', path, body, agent });
  });
};

/** Runs with a provider that answers every call with 8 MiB of error. */
export const faultyProvider = runAgain(['faulty'], CLIENTS);

const HOSTILE: readonly ModelName[] = [
  'calling',
  'talking',
  'colliding',
  'fields',
  'repeating',
  'wide',
  'named',
];

/**
 * Runs with models that call thousands of tools at once, answer megabytes, or answer what takes long to
 * read. Each session is exported.
 */
export async function hostileModel(battle: Battle): Promise<void> {
  const body = JSON.stringify({ input: 'What is 1+1?' });
  await battle.clients(2 * HOSTILE.length, async (agent, client) => {
    const model = HOSTILE[client % HOSTILE.length]!;
    const headers = model === 'fields' ? { accept: 'text/event-stream' } : {};
    const path = runOf(battle, model);
    const answer = await battle.call({ method: 'POST', path, body, headers, agent });
    const [, session] = /"session_id":"(\w+)"/.exec(answer?.head ?? '') ?? [];
    if (session === undefined) return;
    await battle.call({ path: `/v1/sessions/${session}/export?format=inspect`, agent });
  });
}
