/** The generator of random mixes for the hostile suite, with a fake in place of the service. */
import { expect, test } from '@jest/globals';
import { tryMix, type Mix } from '../support/processes/hostile/mix.ts';

const SEEDS = Array.from({ length: 20 }, (_, at) => 20_261_126 + at);
const clientsOf = (mix: Mix): number => mix.reduce((sum, { clients }) => sum + clients, 0);
const isRun = ({ route }: Mix[number]): boolean => route.endsWith('/run');

test('the same seed is the same mix, and other seeds are other mixes', async () => {
  const executed = async (seed: number): Promise<string[]> => {
    const mixes: string[] = [];
    await tryMix(seed, 5, async (mix) => {
      mixes.push(JSON.stringify(mix));
      return [];
    });
    return mixes;
  };
  const first = await Promise.all(SEEDS.map(executed));
  expect(await Promise.all(SEEDS.map(executed))).toEqual(first);
  // What does not fail is executed once.
  expect(first.map(({ length }) => length)).toEqual(SEEDS.map(() => 1));
  expect(new Set(first.flat()).size).toBe(SEEDS.length);
});

test('mixes have many routes, sizes and kinds of misbehaviour', async () => {
  const mixes: Mix[] = [];
  for (const seed of SEEDS) await tryMix(seed, 0, async (mix) => (mixes.push(mix), []));
  const clients = mixes.flat();
  const kinds = (member: keyof Mix[number]): number =>
    new Set(clients.map((client) => JSON.stringify(client[member]))).size;
  expect(clients.length).toBeGreaterThan(2 * SEEDS.length);
  expect(clients.some(isRun)).toBe(true);
  expect(kinds('route')).toBeGreaterThan(20);
  expect([kinds('ids'), kinds('body'), kinds('read'), kinds('bytes')]).toEqual([4, 5, 3, 6]);
});

test('a mix that fails is made smaller, as long as it fails, within the attempts', async () => {
  const ATTEMPTS = 200;
  for (const seed of SEEDS) {
    const executed: { mix: Mix; isSmaller: boolean }[] = [];
    const fails = (mix: Mix): boolean => mix.some((client) => isRun(client) && client.clients > 3);
    const failed = await tryMix(seed, ATTEMPTS, async (mix, isSmaller) => {
      executed.push({ mix, isSmaller });
      return fails(mix) ? ['it stood still'] : [];
    });
    const [first, ...smaller] = executed;
    expect(first!.isSmaller).toBe(false);
    if (!fails(first!.mix)) {
      expect([failed, smaller]).toEqual([undefined, []]);
      continue;
    }
    expect(smaller.every(({ isSmaller }) => isSmaller)).toBe(true);
    expect(smaller.length).toBeLessThanOrEqual(ATTEMPTS);
    expect(failed!.faults).toEqual(['it stood still']);
    expect(fails(failed!.mix)).toBe(true);
    // Four clients that run, and at the most one other kind of client.
    expect(clientsOf(failed!.mix)).toBeLessThanOrEqual(5);
  }
});

test('without attempts, the mix itself is what failed', async () => {
  const executed: Mix[] = [];
  const failed = await tryMix(SEEDS[0]!, 0, async (mix) => {
    executed.push(mix);
    return ['it stood still'];
  });
  expect(executed).toEqual([failed!.mix]);
  expect(clientsOf(failed!.mix)).toBeGreaterThan(0);
});
