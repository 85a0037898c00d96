/**
 * What a replay costs the runs of clients: `node test/bench/replays.ts [--sessions 100] [--turns 20]
 * [--clients 8] [--rounds 10]`. Clients run agents, each some milliseconds after its last answer: in
 * each round for as long as a replay of some of the sessions takes, and as long without one.
 */
import { rm } from 'node:fs/promises';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { startProcess } from './process.ts';
import { createAgent, KEY, prepareFolder, runAgent, send, startTurnlog } from './turnlog.ts';

const WARM_MS = 5_000;
const BETWEEN_MS = 25;
const RECORDERS = 8;
const model = resolve(import.meta.dirname, 'processes/modelServer.ts');

const { values } = parseArgs({
  options: {
    sessions: { type: 'string', default: '100' },
    turns: { type: 'string', default: '20' },
    clients: { type: 'string', default: '8' },
    rounds: { type: 'string', default: '10' },
  },
});
const sessions = Number(values.sessions);
const turns = Number(values.turns);
const clients = Number(values.clients);
const rounds = Number(values.rounds);

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
  await Promise.all([ended, ...Array.from({ length: clients }, client)]);
  return took;
}

const recorded: string[] = [];
async function record(): Promise<void> {
  let session: string | undefined;
  for (let turn = 0; turn < turns; turn += 1)
    session = (await send(url, runAgent(agent_id, session))).session_id as string;
  recorded.push(session!);
}
const left = Array.from({ length: sessions }).values();
const recorder = async (): Promise<void> => {
  for (const _ of left) await record();
};
await Promise.all(Array.from({ length: RECORDERS }, recorder));

/** Resolves with the number of turns that were the same, when the replay has ended. */
async function replay(some: readonly string[]): Promise<number> {
  const headers = { 'x-api-key': KEY, 'content-type': 'application/json' };
  const asked = {
    sessions: some,
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
    if (status !== 'completed') throw new Error(`A replay has ended as ${status}.`);
    return sums.turns.same;
  }
}

await whileAtWork(sleep(WARM_MS));
const alone: number[] = [];
const beside: number[] = [];
let same = 0;
let seconds = 0;
for (let round = 0; round < rounds; round += 1) {
  const some = recorded.filter((_, index) => index % rounds === round);
  const began = performance.now();
  const replaying = replay(some).then((count) => void (same += count));
  beside.push(...(await whileAtWork(replaying)));
  const took = performance.now() - began;
  seconds += took / 1_000;
  alone.push(...(await whileAtWork(sleep(took))));
}
const total = sessions * turns;
process.stdout.write(
  `${same} of ${total} turns are the same, ${(total / seconds).toFixed(0)} replayed a second, beside ${clients} clients\n`,
);
for (const share of [0.5, 0.9, 0.99]) {
  const [own, shared] = [at(alone, share), at(beside, share)];
  process.stdout.write(
    `live p${share * 100}: ${own.toFixed(1)} ms alone (${alone.length} runs), ${shared.toFixed(1)} ms beside a replay (${beside.length} runs): ${(shared / own).toFixed(2)} times\n`,
  );
}
await stop();
await modelServer.stop();
await rm(folder, { recursive: true, force: true });
