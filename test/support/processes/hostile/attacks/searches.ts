import { randomBytes } from 'node:crypto';
import type { Battle } from '../attack.ts';

const CLIENTS = 64;
const WORDS = 500;
/** Of so many clients one searches. */
const SEARCHES = 8;

/** Words that no other turn has. */
const newWords = (): string =>
  Array.from({ length: WORDS }, () => randomBytes(6).toString('hex')).join(' ');

/** More turns of many words than the index keeps up with, and searches for their words. */
export async function floodIndex({ clients, call, prey }: Battle): Promise<void> {
  const path = `/v1/agents/${prey.agents.quick}/run`;
  await clients(CLIENTS, (agent, client) => {
    const input = newWords();
    return client % SEARCHES === 0
      ? call({ path: `/v1/sessions?q=${input.slice(0, 12)}&limit=10`, agent })
      : call({ method: 'POST', path, body: JSON.stringify({ input }), agent });
  });
}
