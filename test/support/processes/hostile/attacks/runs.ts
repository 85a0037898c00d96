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

/** Runs with a model that calls thousands of tools at once, or answers megabytes. */
export const hostileModel = runAgain(['calling', 'talking'], CLIENTS / 4);
