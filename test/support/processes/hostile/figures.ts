import { mkdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** What was seen during one attack; times in ms, memory in MB. */
export interface Figures {
  attack: string;
  /** What must not be, as sentences; empty when the service holds. */
  faults: string[];
  /** The service was there to its end. */
  lived: boolean;
  peak: number;
  /** Once the attack was over and what it had begun had ended. */
  after: number | undefined;
  live: { p50: number; p99: number; max: number; count: number };
  small: { p50: number; p99: number; max: number; count: number; failed: number };
  /** Of probes over new connections: how many there were, and how many were not answered. */
  fresh: { count: number; failed: number };
  /** The most file descriptors of the service. */
  handles: number;
  /** CPU time of the longest step of the event loop that the log names, in ms; 0 without any. */
  longestStep: number;
  /** MB that the service wrote to its log. */
  logged: number;
  answers: Record<string, number>;
}

const CACHE = fileURLToPath(new URL('../../../../node_modules/.cache/', import.meta.url));

const rounded = (value: number | undefined): string =>
  value === undefined || Number.isNaN(value) ? '–' : String(Math.round(value));

const COLUMNS: readonly [string, (figures: Figures) => string][] = [
  ['attack', ({ attack }) => attack],
  ['faults', ({ faults }) => String(faults.length)],
  ['lived', ({ lived }) => (lived ? 'yes' : 'DIED')],
  ['peak MB', ({ peak }) => rounded(peak)],
  ['after MB', ({ after }) => rounded(after)],
  ['live p50', ({ live }) => rounded(live.p50)],
  ['p99', ({ live }) => rounded(live.p99)],
  ['max ms', ({ live }) => rounded(live.max)],
  ['small p50', ({ small }) => rounded(small.p50)],
  ['p99', ({ small }) => rounded(small.p99)],
  ['max ms', ({ small }) => rounded(small.max)],
  ['failed', ({ small }) => `${small.failed}/${small.count}`],
  ['new conn. failed', ({ fresh }) => `${fresh.failed}/${fresh.count}`],
  ['handles', ({ handles }) => String(handles)],
  ['longest step ms', ({ longestStep }) => String(longestStep)],
  ['log MB', ({ logged }) => logged.toFixed(1)],
  [
    'answers',
    ({ answers }) =>
      Object.entries(answers)
        .toSorted(([, a], [, b]) => b - a)
        .map(([kind, count]) => `${kind} × ${count}`)
        .join(', '),
  ],
];

/** Writes the figures so far to `node_modules/.cache/turnlog-hostile.json`, and `.md`, as a table, which it returns. */
export function tell(figures: readonly Figures[], heading: string): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  const table = [
    heading,
    '',
    line(COLUMNS.map(([name]) => name)),
    line(COLUMNS.map(() => '---')),
    ...figures.map((row) => line(COLUMNS.map(([, cell]) => cell(row)))),
    '',
  ].join('\n');
  mkdirSync(CACHE, { recursive: true });
  writeFileSync(
    `${CACHE}turnlog-hostile.json`,
    `${JSON.stringify({ heading, figures }, null, 2)}\n`,
  );
  writeFileSync(`${CACHE}turnlog-hostile.md`, table);
  return table;
}
