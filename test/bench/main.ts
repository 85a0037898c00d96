/**
 * The bars of DESIGN §7, measured: `npm run bench`, or `npm run bench -- runs list` for some of
 * them. Ours and its baseline take turns in the same run, because the machine is shared: the ratios
 * mean something, the absolute numbers less.
 */
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { applyLoad, median } from './load.ts';
import { fillLog } from './largeLog.ts';
import { startProcess } from './process.ts';
import {
  createAgent,
  listAgents,
  prepareFolder,
  runAgent,
  send,
  startTurnlog,
  type BenchService,
} from './turnlog.ts';

const ROUNDS = 5;
const ROUND_MS = 3_000;
const CONNECTIONS = 16;
const MIB = 1_048_576;

const asked = process.argv.slice(2);
const wanted = (name: string): boolean => asked.length === 0 || asked.includes(name);
const say = (text: string): void => void process.stdout.write(`${text}\n`);
const rate = (value: number): string => `${Math.round(value)}/s`;
const ms = (value: number): string => `${value.toFixed(2)} ms`;

interface Bench {
  modelUrl: string;
  baselineUrl: string;
  folder: string;
  service: BenchService;
}

/** Rounds in turn; the ratio is the median of the rounds' ratios. */
async function compare(
  name: string,
  ours: () => Promise<number>,
  baseline: () => Promise<number>,
  bar: string,
): Promise<void> {
  await ours();
  await baseline();
  const rounds: Array<{ ours: number; baseline: number }> = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const first = round % 2 === 0 ? { ours: await ours() } : { baseline: await baseline() };
    const second = 'ours' in first ? { baseline: await baseline() } : { ours: await ours() };
    rounds.push({ ...first, ...second } as { ours: number; baseline: number });
  }
  const ratio = median(rounds.map((round) => round.ours / round.baseline));
  say(
    `${name}: ${ratio.toFixed(2)} × baseline (${rate(median(rounds.map((round) => round.ours)))} against ${rate(median(rounds.map((round) => round.baseline)))}); bar ${bar}`,
  );
}

async function measureRuns({ service, baselineUrl }: Bench): Promise<void> {
  const { agent_id } = await send(service.url, createAgent('bench'));
  const call = {
    method: 'POST' as const,
    path: '/run',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ input: 'What is the answer?' }),
  };
  const load = { connections: CONNECTIONS, milliseconds: ROUND_MS };
  await compare(
    'durable run, new session, 16 connections',
    async () =>
      (await applyLoad({ ...load, url: service.url, call: () => runAgent(agent_id) })).perSecond,
    async () => (await applyLoad({ ...load, url: baselineUrl, call: () => call })).perSecond,
    '≥ 1.0 ×',
  );
}

async function measureLatency({ service, modelUrl }: Bench): Promise<void> {
  const { agent_id } = await send(service.url, createAgent('bench'));
  const direct = {
    method: 'POST' as const,
    path: '/v1/chat/completions',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      model: 'bench',
      messages: [{ role: 'user', content: 'What is the answer?' }],
    }),
  };
  const added: number[] = [];
  for (let round = 0; round <= ROUNDS; round += 1) {
    const ours = await applyLoad({
      url: service.url,
      connections: 1,
      calls: 500,
      call: () => runAgent(agent_id),
    });
    const model = await applyLoad({
      url: new URL(modelUrl).origin,
      connections: 1,
      calls: 500,
      call: () => direct,
    });
    if (round > 0) added.push(ours.p50 - model.p50);
  }
  say(`added latency of a run, p50, 1 connection: ${ms(median(added))}; bar ≤ 1.5 ms`);
}

async function measureCreate({ service }: Bench): Promise<void> {
  const rates: number[] = [];
  for (let round = 0; round <= ROUNDS; round += 1) {
    const { perSecond } = await applyLoad({
      url: service.url,
      connections: CONNECTIONS,
      milliseconds: ROUND_MS,
      call: () => createAgent('bench'),
    });
    if (round > 0) rates.push(perSecond);
  }
  say(`create agent, durable, 16 connections: ${rate(median(rates))}; bar ≥ 5,000/s`);
}

async function measureList({ service, baselineUrl }: Bench): Promise<void> {
  const load = { connections: CONNECTIONS, milliseconds: ROUND_MS };
  await compare(
    'list 1,000 agents, 16 connections',
    async () => (await applyLoad({ ...load, url: service.url, call: () => listAgents })).perSecond,
    async () =>
      (
        await applyLoad({
          ...load,
          url: baselineUrl,
          call: () => ({ method: 'GET', path: '/list' }),
        })
      ).perSecond,
    '≥ 0.8 ×',
  );
}

async function measureLongSession({ service }: Bench): Promise<void> {
  const { agent_id } = await send(service.url, createAgent('narrow'));
  const first = await applyLoad({
    url: service.url,
    connections: 1,
    calls: 500,
    call: () => runAgent(agent_id),
  });
  const { session_id } = await send(service.url, runAgent(agent_id));
  const turns = (calls: number) =>
    applyLoad({
      url: service.url,
      connections: 1,
      calls,
      milliseconds: 300_000,
      call: () => runAgent(agent_id, session_id),
    });
  await turns(99);
  const hundredth = await turns(500);
  await turns(9_150);
  const last = await turns(500);
  say(
    `turn 10,000 of one session against turn 1, p50: ${(last.p50 / first.p50).toFixed(2)} × (${ms(last.p50)} against ${ms(first.p50)}; turn 100: ${ms(hundredth.p50)}); bar ≤ 1.2 ×`,
  );
}

async function measureMemory(modelUrl: string): Promise<void> {
  const folder = await prepareFolder(modelUrl);
  const service = await startTurnlog(folder);
  const { agent_id } = await send(service.url, createAgent('bench'));
  await applyLoad({
    url: service.url,
    connections: CONNECTIONS,
    calls: 2_000,
    call: () => runAgent(agent_id),
  });
  say(`memory after 2,000 runs: ${(service.memory() / MIB).toFixed(0)} MB resident; bar ≤ 150 MB`);
  await service.stop();
  await rm(folder, { recursive: true });
}

/** The first start projects the log; the second one is measured, and then a rebuild. */
async function measureLargeLog(modelUrl: string): Promise<void> {
  const folder = await prepareFolder(modelUrl);
  await fillLog(join(folder, 'data'), 1_000_000);
  await (await startTurnlog(folder)).stop();
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const began = performance.now();
    const service = await startTurnlog(folder);
    await send(service.url, listAgents);
    times.push(performance.now() - began);
    await service.stop();
  }
  say(`start to first answer, log of 1 M events: ${median(times).toFixed(0)} ms; bar ≤ 500 ms`);
  const began = performance.now();
  const rebuild = await startProcess(['services/cli/main.ts', 'projections', 'rebuild'], {
    env: { DATA_DIR: join(folder, 'data'), LOG_LEVEL: 'warn' },
    until: /rebuilt/,
  });
  say(
    `rebuild of all read models: ${rate(1_000_000 / ((performance.now() - began) / 1_000))}; bar ≥ 100,000 events/s`,
  );
  await rebuild.stop().catch(() => undefined);
  await rm(folder, { recursive: true });
}

async function withService(
  modelUrl: string,
  measure: (bench: Bench) => Promise<void>,
): Promise<void> {
  const folder = await prepareFolder(modelUrl);
  const service = await startTurnlog(folder);
  await applyLoad({
    url: service.url,
    connections: CONNECTIONS,
    calls: 1_000,
    call: () => createAgent('bench'),
  });
  const listFile = join(folder, 'list.json');
  await writeFile(
    listFile,
    await (await fetch(service.url + listAgents.path, { headers: listAgents.headers! })).text(),
  );
  const baseline = await startProcess(['test/bench/processes/baseline.ts', modelUrl, listFile]);
  try {
    await measure({ modelUrl, folder, service, baselineUrl: baseline.line });
  } finally {
    await baseline.stop();
    await service.stop();
    await rm(folder, { recursive: true });
  }
}

const model = await startProcess(['test/bench/processes/modelServer.ts']);
try {
  // The list first: it is of 1,000 agents only as long as nothing else has created more.
  if (wanted('list')) await withService(model.line, measureList);
  if (wanted('runs')) await withService(model.line, measureRuns);
  if (wanted('latency')) await withService(model.line, measureLatency);
  if (wanted('create')) await withService(model.line, measureCreate);
  if (wanted('session')) await withService(model.line, measureLongSession);
  if (wanted('memory')) await measureMemory(model.line);
  if (wanted('log')) await measureLargeLog(model.line);
} finally {
  await model.stop();
}
