/**
 * How long usage takes over a million turns: of a year in which a few agents ran, and of one in which
 * each turn had an agent of its own, so that nothing was added up beforehand. The pauses are what others
 * wait for the event loop meanwhile.
 *
 *     node test/bench/usage.ts [<turns>]
 */
import { rmSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { setImmediate } from 'node:timers/promises';
import { generationFile } from '../../infra/sqlite/readModels/generations.ts';
import { openSqliteProjectionStore } from '../../infra/sqlite/readModels/projectionStore.ts';
import { openSqliteReadModels } from '../../infra/sqlite/readModels/readModels.ts';
import { rowEncoder, rowStatements } from '../../infra/sqlite/readModels/statements.ts';
import { createProgressChannel } from '../../shared/projections/progress.ts';
import { readUsage } from '../../shared/usage/queries.ts';
import { TABLES, type UsageRow } from '../../shared/readModels/tables.ts';
import type { UsageColumn } from '../../shared/usage/tables.ts';
import { positionOf, reached } from '../support/builders/history.ts';
import { temporaryFolder } from '../support/stores/sqlite/sqliteEventStore.ts';

const TURNS = Number(process.argv[2] ?? 1_000_000);
const YEAR = { from: '2026-01-01', to: '2026-12-31' };
const ROUNDS = 5;
const ASKED: UsageColumn[][] = [
  [],
  ['day'],
  ['day', 'model'],
  ['agent_id'],
  ['day', 'agent_id', 'key_id'],
];

const say = (line: string): void => void process.stdout.write(`${line}\n`);
const dayOf = (turn: number): string =>
  new Date(Date.UTC(2026, 0, 1 + (turn % 365))).toISOString().slice(0, 10);

const rowOf = (turn: number, agents: number): UsageRow => ({
  account_id: 'acct_1',
  day: dayOf(turn),
  agent_id: `agent_${String((turn * 7) % agents).padStart(26, '0')}`,
  model: `model-${(turn >> 3) % 3}`,
  key_id: `key_${(turn >> 5) % 2}`,
  kind: 'run',
  code: turn % 50 === 0 ? 'model_error' : '',
  completed: turn % 50 === 0 ? 0 : 1,
  failed: turn % 50 === 0 ? 1 : 0,
  interrupted: 0,
  prompt_tokens: 1_000,
  completion_tokens: 100,
  total_tokens: 1_100,
  model_calls: 2,
  tool_calls: 1,
});

/** Saves the rows of the turns as the projection does. Gives their number. */
function fill(file: string, agents: number): number {
  const database = new DatabaseSync(file);
  const save = database.prepare(rowStatements('usage', TABLES.usage).save);
  const encode = rowEncoder(TABLES.usage);
  database.exec('BEGIN');
  for (let turn = 0; turn < TURNS; turn += 1) save.run(...encode(rowOf(turn, agents)));
  database.exec('COMMIT');
  const { rows } = database.prepare('SELECT count(*) AS rows FROM usage').get()!;
  database.close();
  return rows as number;
}

/** The longest time that somebody else waits for the event loop while the work is done. */
async function longestPause(work: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  const state = { done: false };
  const done = work().finally(() => void (state.done = true));
  for (let last = performance.now(); !state.done; last = performance.now()) {
    await setImmediate();
    longest = Math.max(longest, performance.now() - last);
  }
  await done;
  return longest;
}

/** A client that stays. */
const STAYS = new AbortController().signal;

const price = { input_per_million: '2.50', output_per_million: '10', currency: 'USD' };
const models = {
  find: (id: string) => ({
    id,
    provider: 'bench',
    upstream_model: id,
    context_window: 1,
    price,
  }),
};

for (const agents of [20, TURNS]) {
  const folder = await temporaryFolder();
  const store = await openSqliteProjectionStore({ folder });
  await store.apply([], reached(positionOf(1)));
  const rows = fill(generationFile(folder, store.generation), agents);
  const progress = createProgressChannel();
  progress.publish({
    position: positionOf(1),
    generation: store.generation,
    caughtUp: true,
    percent: 100,
    keepsKnownRows: false,
  });
  const readModels = openSqliteReadModels({ folder, progress });
  say(`${TURNS} turns of ${agents} agents in a year: ${rows} rows`);
  for (const by of ASKED) {
    const times: number[] = [];
    const work = process.cpuUsage();
    let pause = 0;
    for (let round = 0; round < ROUNDS; round += 1) {
      const began = performance.now();
      const asked = { ...YEAR, by, limit: 100 };
      const read = () => readUsage({ readModels, models }, 'acct_1', asked, STAYS);
      pause = Math.max(pause, await longestPause(read));
      times.push(performance.now() - began);
    }
    const { user, system } = process.cpuUsage(work);
    const cpu = (user + system) / 1_000 / ROUNDS;
    const median = times.toSorted((a, b) => a - b)[ROUNDS >> 1]!;
    say(
      `  by ${by.join(', ') || 'nothing'}: ${median.toFixed(0)} ms (${cpu.toFixed(0)} ms of CPU), pauses up to ${pause.toFixed(0)} ms`,
    );
  }
  await readModels.close();
  await store.close();
  rmSync(folder, { recursive: true });
}
