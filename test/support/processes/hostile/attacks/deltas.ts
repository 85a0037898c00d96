import type { Battle } from '../attack.ts';
import type { ModelName } from '../world.ts';

const CLIENTS = 64;
const MODELS: readonly ModelName[] = ['dripping', 'lines', 'indexes', 'bytes'];

/**
 * Streamed runs with a provider that sends 100,000 deltas of one character, events of empty lines, parts of
 * one tool call with ever new indexes, or chunks of one byte. The last ones also come in a whole answer.
 */
export async function streamDeltas({ clients, call, prey }: Battle): Promise<void> {
  const body = JSON.stringify({ input: 'hi' });
  await clients(CLIENTS, (agent, client, turn) => {
    const model = MODELS[client % MODELS.length]!;
    const isWhole = model === 'bytes' && turn % 2 === 1;
    const headers = isWhole ? {} : { accept: 'text/event-stream' };
    const path = `/v1/agents/${prey.agents[model]}/run`;
    return call({ method: 'POST', path, headers, body, agent });
  });
}
