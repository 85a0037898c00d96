import { rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { fillLog } from './largeLog.ts';
import { allOf, cpuPerCall } from './cpuPerCall.ts';
import { applyLoad, type Call, type Load, type LoadOptions } from './load.ts';
import { ROOT, startProcess } from './process.ts';
import { summarize, takeTurns, type Result, type Round } from './report.ts';
import {
  createAgent,
  listAgents,
  prepareFolder,
  runAgent,
  send,
  startTurnlog,
  type BenchService,
} from './turnlog.ts';

const PAIRS = 13;
const ROUND_MS = 2_000;
const CONNECTIONS = 16;
const LONG_SESSION = 2_000;
const LARGE_LOG = 500_000;
const REBUILD_PAIRS = 3;
const CPU_PAIRS = 4;
const CPU_RUNS = 1_500;

/** One side of a row, which is measured in each round. */
interface Side {
  measure: () => Promise<number>;
  close(): Promise<void>;
}

interface Row {
  unit: string;
  better: 'more' | 'less';
  /** Pairs of rounds. */
  pairs: number;
  open(modelUrl: string, checkout: string): Promise<Side>;
}

async function started(modelUrl: string, checkout: string) {
  const folder = await prepareFolder(modelUrl);
  const service = await startTurnlog(folder, checkout);
  const { agent_id } = await send(service.url, createAgent('bench'));
  const close = async (): Promise<void> => {
    await service.stop();
    await rm(folder, { recursive: true });
  };
  return { service, agent_id: agent_id as string, close };
}

type Prepare = (service: BenchService, agentId: string) => Promise<() => Call>;

/** Measures a service under a load of one kind of call. */
const underLoad = (
  prepare: Prepare,
  load: Omit<LoadOptions, 'url' | 'call'>,
  measured: (load: Load) => number,
): Row['open'] =>
  async function open(modelUrl, checkout) {
    const { service, agent_id, close } = await started(modelUrl, checkout);
    const call = await prepare(service, agent_id);
    return {
      close,
      measure: async () => measured(await applyLoad({ ...load, url: service.url, call })),
    };
  };

/** Calls a second that a service answers. */
const rate = (prepare: Prepare): Row => ({
  unit: '/s',
  better: 'more',
  pairs: PAIRS,
  open: underLoad(
    prepare,
    { connections: CONNECTIONS, milliseconds: ROUND_MS },
    ({ perSecond }) => perSecond,
  ),
});

/** The median time of one call after the other. */
const latency = (prepare: Prepare): Row => ({
  unit: ' ms',
  better: 'less',
  pairs: PAIRS,
  open: underLoad(prepare, { connections: 1, calls: 500 }, ({ p50 }) => p50),
});

async function openLargeLog(modelUrl: string, checkout: string) {
  const folder = await prepareFolder(modelUrl);
  await fillLog(join(folder, 'data'), LARGE_LOG);
  await (await startTurnlog(folder, checkout)).stop();
  return { folder, close: () => rm(folder, { recursive: true }) };
}

async function timeOf(work: () => Promise<void>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

/** The rows by name. */
export const COMPARED_ROWS: Readonly<Record<string, Row>> = {
  list: rate(async (service) => {
    const more = { url: service.url, connections: CONNECTIONS, calls: 999 };
    await applyLoad({ ...more, call: () => createAgent('bench') });
    return () => listAgents;
  }),
  runs: rate(async (_service, agentId) => () => runAgent(agentId)),
  create: rate(async () => () => createAgent('bench')),
  latency: latency(async (_service, agentId) => () => runAgent(agentId)),
  session: latency(async ({ url }) => {
    const { agent_id } = await send(url, createAgent('narrow'));
    const { session_id } = await send(url, runAgent(agent_id));
    const call = () => runAgent(agent_id, session_id);
    await applyLoad({ url, connections: 1, calls: LONG_SESSION, milliseconds: 300_000, call });
    return call;
  }),
  cpu: {
    unit: ' µs',
    better: 'less',
    pairs: CPU_PAIRS,
    async open(modelUrl, checkout) {
      const { service, agent_id, close } = await started(modelUrl, checkout);
      const { url, cpuTime } = service;
      const call = () => runAgent(agent_id);
      const load = { url, connections: CONNECTIONS, calls: CPU_RUNS, call };
      return {
        close,
        measure: async () => allOf(await cpuPerCall({ cpuTime, load, settleMs: 500 })),
      };
    },
  },
  memory: {
    unit: ' MB',
    better: 'less',
    pairs: 2,
    open: async (modelUrl, checkout) => ({
      close: async () => undefined,
      async measure() {
        const { service, agent_id, close } = await started(modelUrl, checkout);
        const call = () => runAgent(agent_id);
        await applyLoad({ url: service.url, connections: CONNECTIONS, calls: 2_000, call });
        const resident = service.memory() / 1_048_576;
        await close();
        return resident;
      },
    }),
  },
  start: {
    unit: ' ms',
    better: 'less',
    pairs: PAIRS,
    async open(modelUrl, checkout) {
      const { folder, close } = await openLargeLog(modelUrl, checkout);
      const measure = async (): Promise<number> => {
        let service: BenchService | undefined;
        const time = await timeOf(async () => {
          service = await startTurnlog(folder, checkout);
          await send(service.url, listAgents);
        });
        await service?.stop();
        return time;
      };
      return { close, measure };
    },
  },
  rebuild: {
    unit: ' events/s',
    better: 'more',
    pairs: REBUILD_PAIRS,
    async open(modelUrl, checkout) {
      const { folder, close } = await openLargeLog(modelUrl, checkout);
      const env = { DATA_DIR: join(folder, 'data'), LOG_LEVEL: 'warn' };
      const rebuild = async (): Promise<void> => {
        const args = ['services/cli/main.ts', 'projections', 'rebuild'];
        const cli = await startProcess(args, { env, until: /rebuilt/, checkout });
        await cli.stop().catch(() => undefined);
      };
      return { close, measure: async () => (LARGE_LOG / (await timeOf(rebuild))) * 1_000 };
    },
  },
};

async function compare(
  name: string,
  { open, better, pairs, unit }: Row,
  { modelUrl, other }: { modelUrl: string; other: string },
): Promise<Result> {
  const ours = await open(modelUrl, ROOT);
  const theirs = await open(modelUrl, other);
  const rounds = await takeTurns(pairs, ours.measure, theirs.measure);
  await ours.close();
  await theirs.close();
  const ratioOf = (round: Round): number =>
    better === 'more' ? round.ours / round.other : round.other / round.ours;
  return { name, unit, ...summarize(rounds, ratioOf) };
}

/**
 * Measures rows of this checkout and of another one, and reports each as soon as it is there. Both
 * services run at once and take turns in every round, because the machine is shared: the ratio is the
 * geometric mean of the rounds' ratios, and above 1 where ours is the better one.
 */
export async function compareWith(
  other: string,
  names: readonly string[],
  onResult: (result: Result) => void,
): Promise<void> {
  const model = await startProcess(['test/bench/processes/modelServer.ts']);
  try {
    for (const [name, row] of Object.entries(COMPARED_ROWS))
      if (names.includes(name))
        onResult(await compare(name, row, { modelUrl: model.line, other: resolve(other) }));
  } finally {
    await model.stop();
  }
}
