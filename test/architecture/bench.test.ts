import { spawnSync } from 'node:child_process';
import { expect, test } from '@jest/globals';
import { summarize, takeTurns, type Round } from '../bench/report.ts';

const FIRST = 0.8;
const SECOND = 1.15;

/** A side whose figure depends on whether it is measured first in a round. */
function biasedSides(ours: number, other: number) {
  let measurements = 0;
  const of = (cost: number) => async (): Promise<number> => {
    measurements += 1;
    return cost * (measurements % 2 === 1 ? FIRST : SECOND);
  };
  return [of(ours), of(other)] as const;
}

const ratioOf = (round: Round): number => round.other / round.ours;

test.each([1, 3, 4])(
  'the order of measurement does not change the ratio of %i pairs of rounds',
  async (pairs) => {
    const rounds = await takeTurns(pairs, ...biasedSides(100, 100));
    const { ratio, range } = summarize(rounds, ratioOf);
    expect(rounds).toHaveLength(pairs * 2);
    expect(ratio).toBeCloseTo(1);
    expect(range[0]).toBeCloseTo(1);
    expect(range[1]).toBeCloseTo(1);
  },
);

test('the ratio is the geometric mean of the rounds, with the extremes of the pairs', () => {
  const others = [1, 4, 2, 8];
  const rounds = others.map((other) => ({ ours: 1, other }));
  const { ratio, range } = summarize(rounds, ratioOf);
  expect(ratio).toBeCloseTo(64 ** (1 / 4));
  expect(range[0]).toBeCloseTo(2);
  expect(range[1]).toBeCloseTo(4);
});

test.each([
  ['no-such-commit', 'true', 1, /^skipped: the repository has no no-such-commit\./],
  ['no-such-commit', '', 0, /^skipped/],
])('without the commit %s and with CI=%s, the CPU time ends with %i', (base, CI, status, says) => {
  const env = { ...process.env, BENCH_BASE: base, CI };
  const gate = spawnSync(process.execPath, ['test/bench/cpuGate.ts'], { env, encoding: 'utf8' });
  expect([gate.status, gate.stdout]).toEqual([status, expect.stringMatching(says)]);
});
