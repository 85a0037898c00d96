import type { Battle } from '../attack.ts';

const CLIENTS = 64;

/** Streamed runs with a provider that sends 100,000 deltas of one character. */
export async function streamDeltas({ clients, call, prey }: Battle): Promise<void> {
  const path = `/v1/agents/${prey.agents.dripping}/run`;
  const body = JSON.stringify({ input: 'hi' });
  const headers = { accept: 'text/event-stream' };
  await clients(CLIENTS, (agent) => call({ method: 'POST', path, headers, body, agent }));
}
