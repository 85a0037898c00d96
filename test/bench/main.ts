/**
 * The bars, measured: `npm run bench`, or `npm run bench -- runs list` for some of them. Ours and its
 * baseline take turns in the same run, because the machine is shared: the ratios mean something, the
 * absolute numbers less.
 */
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { allOf, cpuPerCall } from './cpuPerCall.ts';
import { applyLoad, median, type Call } from './load.ts';
import { fillLog } from './largeLog.ts';
import { CPU_PARTS, startProcess, type CpuTime } from './process.ts';
import { printReport, summarize, takeTurns, type Result } from './report.ts';
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
const PAIRS = 3;
const ROUND_MS = 3_000;
const CONNECTIONS = 16;
const MIB = 1_048_576;
/** The time after a start or a load until memory counts as that of an idle service. */
const IDLE_MS = 10_000;

const WARM_UP_RUNS = 2_000;
const CPU_RUNS = 2_000;
/** The budget of a run in microseconds of CPU time, by part of the process. */
const CPU_BARS: Partial<CpuTime> = { main: 220, projector: 55, writer: 45, 'V8 workers': 40 };
const ALL_CPU_BAR = 360;
/** After a load the projector works on for this long. */
const SETTLE_MS = 1_000;

const asked = process.argv.slice(2);
const wanted = (name: string): boolean => asked.length === 0 || asked.includes(name);
const results: Result[] = [];

function record(result: Result): void {
  results.push(result);
  process.stderr.write(`${result.name}: ${result.ours.toPrecision(4)}${result.unit}\n`);
}

interface Bench {
  modelUrl: string;
  baseline: BenchService;
  folder: string;
  service: BenchService;
}

interface Comparison extends Pick<Result, 'name' | 'unit' | 'bar'> {
  ours: () => Promise<number>;
  baseline: () => Promise<number>;
}

async function compare({ ours, baseline, ...result }: Comparison): Promise<void> {
  const rounds = await takeTurns(PAIRS, ours, baseline);
  record({ ...result, ...summarize(rounds, (round) => round.ours / round.other) });
}

const BASELINE_RUN: Call = {
  method: 'POST',
  path: '/run',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ input: 'What is the answer?' }),
};

async function measureRuns({ service, baseline }: Bench): Promise<void> {
  const { agent_id } = await send(service.url, createAgent('bench'));
  const call = () => runAgent(agent_id);
  for (const connections of [1, CONNECTIONS, 64]) {
    const load = { connections, milliseconds: ROUND_MS };
    await compare({
      name: `durable run, new session, connections: ${connections}`,
      unit: '/s',
      bar: connections === 1 ? '' : '≥ 1.0 ×',
      ours: async () => (await applyLoad({ ...load, url: service.url, call })).perSecond,
      baseline: async () =>
        (await applyLoad({ ...load, url: baseline.url, call: () => BASELINE_RUN })).perSecond,
    });
  }
  const one = { connections: 1, calls: 500 };
  await compare({
    name: 'run, p50, one connection',
    unit: ' ms',
    bar: '≤ 2.0 ×',
    ours: async () => (await applyLoad({ ...one, url: service.url, call })).p50,
    baseline: async () =>
      (await applyLoad({ ...one, url: baseline.url, call: () => BASELINE_RUN })).p50,
  });
}

/** CPU time per run, which stays stable on a machine that others use. */
async function measureCpu({ service, baseline }: Bench): Promise<void> {
  const { agent_id } = await send(service.url, createAgent('bench'));
  const cost = async ({ url, cpuTime }: BenchService, call: () => Call): Promise<CpuTime> => {
    const load = { url, connections: CONNECTIONS, call };
    await applyLoad({ ...load, calls: WARM_UP_RUNS });
    return cpuPerCall({ cpuTime, load: { ...load, calls: CPU_RUNS }, settleMs: SETTLE_MS });
  };
  const ours = await cost(service, () => runAgent(agent_id));
  const floor = await cost(baseline, () => BASELINE_RUN);
  const row = (name: string, of: (time: CpuTime) => number, bar: number | undefined): void =>
    record({
      name: `CPU time per run, ${name}`,
      unit: ' µs',
      ours: of(ours),
      other: of(floor),
      ...(bar !== undefined && { bar: `≤ ${bar} µs` }),
    });
  for (const part of CPU_PARTS) row(part, (time) => time[part], CPU_BARS[part]);
  row('all', allOf, ALL_CPU_BAR);
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
  record({
    name: 'added to the time of the model, p50, one connection',
    unit: ' ms',
    ours: median(added),
    bar: '≤ 1.5 ms',
  });
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
  const name = `create an agent, durable, connections: ${CONNECTIONS}`;
  record({ name, unit: '/s', ours: median(rates), bar: '≥ 8,000/s' });
}

async function measureList({ service, baseline }: Bench): Promise<void> {
  const load = { connections: CONNECTIONS, milliseconds: ROUND_MS };
  const fromMemory: Call = { method: 'GET', path: '/list' };
  await compare({
    name: `list 1,000 agents, connections: ${CONNECTIONS}`,
    unit: '/s',
    bar: '≥ 0.8 ×',
    ours: async () =>
      (await applyLoad({ ...load, url: service.url, call: () => listAgents })).perSecond,
    baseline: async () =>
      (await applyLoad({ ...load, url: baseline.url, call: () => fromMemory })).perSecond,
  });
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
  await turns(9_650);
  const last = await turns(500);
  record({
    name: 'turn 10,000 of a session against turn 1, p50',
    unit: ' ms',
    ours: last.p50,
    other: first.p50,
    ratio: last.p50 / first.p50,
    bar: '≤ 1.2 ×',
  });
}

async function measureMemory(modelUrl: string): Promise<void> {
  const folder = await prepareFolder(modelUrl);
  // The first start of a checkout compiles its code, which takes memory.
  await (await startTurnlog(folder)).stop();
  const service = await startTurnlog(folder);
  const recordMemory = (when: string, bar: string): void =>
    record({ name: `memory, ${when}`, unit: ' MB', ours: service.memory() / MIB, bar });
  await sleep(IDLE_MS);
  recordMemory('idle', '≤ 120 MB');
  const { agent_id } = await send(service.url, createAgent('bench'));
  await applyLoad({
    url: service.url,
    connections: CONNECTIONS,
    calls: 2_000,
    call: () => runAgent(agent_id),
  });
  recordMemory('after 2,000 runs', '≤ 150 MB');
  await sleep(IDLE_MS);
  recordMemory('idle after them', '');
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
  record({
    name: 'start to the first answer, log of 1 million events',
    unit: ' ms',
    ours: median(times),
    bar: '≤ 500 ms',
  });
  const began = performance.now();
  const rebuild = await startProcess(['services/cli/main.ts', 'projections', 'rebuild'], {
    env: { DATA_DIR: join(folder, 'data'), LOG_LEVEL: 'warn' },
    until: /rebuilt/,
  });
  record({
    name: 'rebuild of all read models',
    unit: ' events/s',
    ours: 1_000_000 / ((performance.now() - began) / 1_000),
    bar: '≥ 200,000 events/s',
  });
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
  const floor = await startProcess(['test/bench/processes/baseline.ts', modelUrl, listFile]);
  const baseline = { ...floor, url: floor.line };
  try {
    await measure({ modelUrl, folder, service, baseline });
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
  if (wanted('cpu')) await withService(model.line, measureCpu);
  if (wanted('latency')) await withService(model.line, measureLatency);
  if (wanted('create')) await withService(model.line, measureCreate);
  if (wanted('session')) await withService(model.line, measureLongSession);
  if (wanted('memory')) await measureMemory(model.line);
  if (wanted('log')) await measureLargeLog(model.line);
} finally {
  await model.stop();
}
printReport(results, 'baseline');
