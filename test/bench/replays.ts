/**
 * What a replay costs the runs of clients: `node test/bench/replays.ts [--sessions 100] [--turns 20]
 * [--clients 8]`. Clients run agents, each some milliseconds after its last answer; their
 * latencies while a replay of all the sessions runs, beside those before and after it.
 */
import { rm } from 'node:fs/promises';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { startProcess } from './process.ts';
import { createAgent, KEY, prepareFolder, runAgent, send, startTurnlog } from './turnlog.ts';

const ALONE_MS = 15_000;
const BETWEEN_MS = 25;
const RECORDERS = 8;
const model = resolve(import.meta.dirname, 'processes/modelServer.ts');

const { values } = parseArgs({
  options: {
    sessions: { type: 'string', default: '100' },
    turns: { type: 'string', default: '20' },
    clients: { type: 'string', default: '8' },
  },
});
const [sessions, turns, clients] = [values.sessions, values.turns, values.clients].map(Number);

const at = (took: readonly number[], share: number): number =>
  took.toSorted((a, b) => a - b)[Math.floor(took.length * share)] ?? Number.NaN;

const modelServer = await startProcess([model], { until: /http/ });
const folder = await prepareFolder(/http\S+/.exec(modelServer.line)![0]);
const { url, stop } = await startTurnlog(folder);
const { agent_id } = await send(url, createAgent('bench'));

/** Milliseconds of each run that ended while the work went on. */
async function whileAtWork(work: Promise<unknown>): Promise<number[]> {
  const took: number[] = [];
  const load = { over: false };
  const ended = work.finally(() => void (load.over = true));
  const client = async (): Promise<void> => {
    while (!load.over) {
      await sleep(BETWEEN_MS * (0.5 + Math.random()));
      const began = performance.now();
      await send(url, runAgent(agent_id));
      took.push(performance.now() - began);
    }
  };
  await Promise.all([ended, ...Array.from({ length: clients! }, client)]);
  return took;
}

const recorded: string[] = [];
async function record(): Promise<void> {
  let session: string | undefined;
  for (let turn = 0; turn < turns!; turn += 1)
    session = (await send(url, runAgent(agent_id, session))).session_id as string;
  recorded.push(session!);
}
const left = Array.from({ length: sessions! }).values();
const recorder = async (): Promise<void> => {
  for (const _ of left) await record();
};
await Promise.all(Array.from({ length: RECORDERS }, recorder));

async function replay(): Promise<void> {
  const headers = { 'x-api-key': KEY, 'content-type': 'application/json' };
  const asked = {
    sessions: recorded,
    tools: 'recorded',
    concurrency: 4,
    budget: { tokens: 1_000_000_000 },
  };
  const body = JSON.stringify(asked);
  const path = '/v1/replays';
  const { replay_id } = await send(url, { method: 'POST', path, headers, body });
  for (;;) {
    await sleep(250);
    const { status, sums } = await send(url, {
      method: 'GET',
      path: `${path}/${replay_id}`,
      headers,
    });
    if (status === 'running') continue;
    const { same, total } = sums.turns;
    process.stdout.write(`the replay has ${status}: ${same} of ${total} turns are the same\n`);
    return;
  }
}

await whileAtWork(sleep(ALONE_MS / 3));
const before = await whileAtWork(sleep(ALONE_MS));
const began = performance.now();
const beside = await whileAtWork(replay());
const seconds = (performance.now() - began) / 1_000;
const after = await whileAtWork(sleep(ALONE_MS));
const alone = [...before, ...after];
const perSecond = ((sessions! * turns!) / seconds).toFixed(0);
process.stdout.write(`${perSecond} turns replayed a second, beside ${clients} clients\n`);
for (const share of [0.5, 0.99]) {
  const [own, shared] = [at(alone, share), at(beside, share)];
  process.stdout.write(
    `live p${share * 100}: ${own.toFixed(1)} ms alone (${alone.length} runs), ${shared.toFixed(1)} ms beside the replay (${beside.length} runs): ${(shared / own).toFixed(2)} times\n`,
  );
}
await stop();
await modelServer.stop();
await rm(folder, { recursive: true, force: true });
