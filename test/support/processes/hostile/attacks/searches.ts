import { randomBytes } from 'node:crypto';
import type { Battle } from '../attack.ts';

const CLIENTS = 64;
const WORDS = 500;
/** Of so many clients one searches. */
const SEARCHES = 8;

/** Words that no other turn has. */
const newWords = (): string =>
  Array.from({ length: WORDS }, () => randomBytes(6).toString('hex')).join(' ');

/** Marks in the order that a normalization reverses, in a time that grows with the square of their number. */
const MARKED = `a${'\u1dc0'.repeat(32_767)}${'\u1dc2'.repeat(32_767)}`;
/** Of so many inputs one is of marks. */
const OF_MARKS = 50;

/**
 * More turns of many words, or of words with many marks, than the index keeps up with, and searches for
 * their words.
 */
export async function floodIndex({ clients, call, prey }: Battle): Promise<void> {
  const path = `/v1/agents/${prey.agents.quick}/run`;
  await clients(CLIENTS, (agent, client, turn) => {
    const input = (client + turn) % OF_MARKS === 0 ? MARKED : newWords();
    return client % SEARCHES === 0
      ? call({ path: `/v1/sessions?q=${encodeURIComponent(input.slice(0, 12))}&limit=10`, agent })
      : call({ method: 'POST', path, body: JSON.stringify({ input }), agent });
  });
}
