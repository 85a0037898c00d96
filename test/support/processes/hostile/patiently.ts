import { setTimeout as sleep } from 'node:timers/promises';

const WAIT_MS = 500;
const TRIES = 120;

/** Asks until the answer is not "too much at this time"; the last one where it stays so. */
export async function patiently<Answer extends { status: number }>(
  ask: () => Promise<Answer>,
): Promise<Answer> {
  for (let left = TRIES; left > 1; left -= 1) {
    const answer = await ask();
    if (answer.status !== 429 && answer.status !== 503) return answer;
    await sleep(WAIT_MS);
  }
  return ask();
}
