import type { Battle } from '../attack.ts';
import { size } from '../../../jest/size.ts';

const CLIENTS = size({ small: 120, full: 600 });
const KEYS = 8;
const NEW_KEYS_MS = 2_000;
const GIVE_UP_MS = 100;

/**
 * Clients that send the same keyed runs at once: half of them one with a large result, which all wait
 * for, the others a slow one, which each client gives up and repeats.
 */
export async function retryAtOnce({ call, clients, prey }: Battle): Promise<void> {
  await clients(CLIENTS, (agent, client) => {
    const isPatient = client % 2 === 0;
    const key = `${client % KEYS} ${Math.floor(Date.now() / NEW_KEYS_MS)}`;
    return call({
      method: 'POST',
      path: `/v1/agents/${prey.agents[isPatient ? 'large' : 'slow']}/run`,
      headers: { 'idempotency-key': key },
      body: JSON.stringify({ input: '160000' }),
      ...(!isPatient && { signal: AbortSignal.timeout(GIVE_UP_MS) }),
      agent,
    });
  });
}
