import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cpus, loadavg, release, totalmem } from 'node:os';
import { join } from 'node:path';
import { median } from './load.ts';
import { ROOT } from './process.ts';

/** One measurement: ours, and where there is one its baseline or the other checkout. */
export interface Result {
  name: string;
  unit: string;
  ours: number;
  other?: number;
  /** The geometric mean of the rounds' ratios. */
  ratio?: number;
  /** The least and the greatest ratio of two rounds, one that began with each side. */
  range?: readonly [number, number];
  bar?: string;
}

/** A round in which both were measured. */
export interface Round {
  ours: number;
  other: number;
}

/**
 * Measures both in pairs of rounds. Each side begins one round of a pair, because the first
 * measurement of a round differs from the second one. A round before them warms both up.
 */
export async function takeTurns(
  pairs: number,
  ours: () => Promise<number>,
  other: () => Promise<number>,
): Promise<Round[]> {
  const rounds: Round[] = [];
  for (let round = 0; round <= pairs * 2; round += 1) {
    const isOursFirst = round % 2 === 0;
    const first = await (isOursFirst ? ours() : other());
    const second = await (isOursFirst ? other() : ours());
    rounds.push(isOursFirst ? { ours: first, other: second } : { ours: second, other: first });
  }
  return rounds.slice(1);
}

const geometricMean = (values: readonly number[]): number =>
  Math.exp(values.reduce((sum, value) => sum + Math.log(value), 0) / values.length);

/**
 * Medians of rounds, and the geometric mean of their ratios: in it, an advantage of the side that
 * is measured first cancels out between the two rounds of a pair, which it does not in a median.
 */
export function summarize(
  rounds: readonly Round[],
  ratioOf: (round: Round) => number,
): Required<Pick<Result, 'ours' | 'other' | 'ratio' | 'range'>> {
  const ratios = rounds.map(ratioOf);
  const ofPairs = Array.from({ length: rounds.length / 2 }, (_, pair) =>
    geometricMean(ratios.slice(pair * 2, pair * 2 + 2)),
  );
  return {
    ours: median(rounds.map(({ ours }) => ours)),
    other: median(rounds.map(({ other }) => other)),
    ratio: geometricMean(ratios),
    range: [Math.min(...ofPairs), Math.max(...ofPairs)],
  };
}

const loadAtStart = loadavg()[0]!;

function commitOf(): string {
  try {
    return execFileSync('git', ['rev-parse', 'HEAD'], { cwd: ROOT, encoding: 'utf8' }).trim();
  } catch {
    return 'unknown';
  }
}

/** The machine, the versions and the load, without which figures mean little. */
function describeRun() {
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  const [cpu] = cpus();
  return {
    machine: {
      cpu: cpu?.model ?? 'unknown',
      cores: cpus().length,
      memory_gib: Math.round(totalmem() / 2 ** 30),
      kernel: release(),
    },
    versions: {
      turnlog: version as string,
      commit: commitOf(),
      node: process.versions.node,
      sqlite: process.versions['sqlite'],
    },
    load: { at_start: loadAtStart, at_end: loadavg()[0]! },
  };
}

const figure = (value: number | undefined, unit: string): string =>
  value === undefined ? '' : `${Number(value.toPrecision(4)).toLocaleString('en')}${unit}`;

function rowOf({ name, unit, ours, other, ratio, range, bar = '' }: Result): string {
  const spread = range ? ` (${range.map((value) => value.toFixed(2)).join(' to ')})` : '';
  const times = ratio === undefined ? '' : `${ratio.toFixed(2)} ×${spread}`;
  return `| ${[name, figure(ours, unit), figure(other, unit), times, bar].join(' | ')} |`;
}

/** Prints the results as one Markdown table, then as one line of JSON. */
export function printReport(results: readonly Result[], against: string): void {
  const head = ['', 'ours', against, 'ratio', 'bar'];
  const lines = [
    `| ${head.join(' | ')} |`,
    `|${'---|'.repeat(head.length)}`,
    ...results.map(rowOf),
  ];
  process.stdout.write(`${lines.join('\n')}\n\n`);
  process.stdout.write(`${JSON.stringify({ ...describeRun(), against, results })}\n`);
}
