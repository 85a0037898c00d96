import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';
import {
  LONG_STEP_MS,
  type LongStep,
} from '../../../../shared/lib/concurrency/eventLoopWatchdog.ts';
import { scrape, valueOf } from '../../http/metrics.ts';
import { apiClient } from '../../http/service.ts';
import { size } from '../../jest/size.ts';
import { clientWith, newKey } from '../operator.ts';
import type { ServerProcess } from '../serverProcess.ts';
import { PROVIDER_SECRET } from './answers.ts';
import type { Report } from './attack.ts';
import { ATTACKS, type AttackName } from './attacks/index.ts';
import type { Figures } from './figures.ts';
import { startNeighbour, type Neighbour } from './neighbour.ts';
import { patiently } from './patiently.ts';
import { asker, percentile, startProbes, type Ask, type Probes } from './probes.ts';
import { startAttacker, type Attacker } from './processes/children.ts';
import { startConfined, watchMemory, type Memory } from './service.ts';
import { SLOW_MS, type World } from './world.ts';

export const SECONDS = size({ small: 4, full: 300 });
const LIVE_EVERY_MS = 50;
const FRESH_EVERY_MS = 1_000;
/**
 * What the service may take, in MB, what is left of it when all is over, and the longest step of its
 * event loop, in ms. At the small size an attack meets a process that has just begun, with code that is
 * not compiled yet.
 */
export const BARS = size({
  small: { peak: 600, after: 560, stepMs: 400 },
  full: { peak: 450, after: 400, stepMs: LONG_STEP_MS },
});
/** In ms. Other suites run beside the small size, and it has few probes: half of them must be quick. */
const TIMES = size({
  small: { of: 'p50', live: 2_000, small: 2_000 },
  full: { of: 'p99', live: 100, small: 100 },
} as const);
/** What the log may grow by: a line for an answer at the most, and what a process says anyhow. */
const LOG = { perAnswer: 1_000, besides: 100_000 };
/** Runs that were begun may end, and the collector has time. */
const SETTLE_MS = 2 * SLOW_MS + 30_000;
/** Longer than SHUTDOWN_GRACE_MS. */
const STOP_MS = 30_000;
const SETTLE_LOOK_MS = 250;
/** When a restart after the attack is to be ready, and how long it is watched then. */
const RESTART = size({
  small: { readyMs: 30_000, aliveMs: 500 },
  full: { readyMs: 2_000, aliveMs: 60_000 },
});
/** Acknowledged things of attackers that are looked for. */
const SAMPLE = 200;

const timesOf = ({ times }: Probes) => ({
  p50: percentile(times, 0.5),
  p99: percentile(times, 0.99),
  max: percentile(times, 1),
  count: times.length,
});

function merged(reports: readonly Report[]): Report {
  const all: Report = { answers: {}, oddities: [], agents: [], sessions: [] };
  for (const { answers, oddities, agents, sessions } of reports) {
    for (const [kind, count] of Object.entries(answers))
      all.answers[kind] = (all.answers[kind] ?? 0) + count;
    all.oddities.push(...oddities);
    all.agents.push(...agents);
    all.sessions.push(...sessions);
  }
  return all;
}

/** Some of many, spread evenly. */
const sampled = <Value>(values: readonly Value[]): Value[] =>
  values.filter((_, index) => index % Math.ceil(values.length / SAMPLE) === 0);

/** Which of the things that attackers were told were done are not there. */
async function lostBy(url: string, key: string, { agents, sessions }: Report): Promise<string[]> {
  const { get } = apiClient(url, key);
  const paths = [
    ...sampled(agents).map((id) => `/v1/agents/${id}`),
    ...sampled(sessions).map((id) => `/v1/sessions/${id}?limit=1`),
  ];
  const lost: string[] = [];
  for (const path of paths) {
    const { status } = await patiently(() => get(path));
    if (status !== 200) lost.push(`${path}: ${status}`);
  }
  return lost;
}

/** Resolves once no run is left and memory is sane, or the time for it is over. */
async function settle(url: string, memory: Memory): Promise<string | undefined> {
  const until = performance.now() + SETTLE_MS;
  for (;;) {
    const { body } = await apiClient(url, undefined).get('/health/ready');
    const now = memory.now() ?? 0;
    if (body.data?.runs_in_flight === 0 && now <= BARS.after) return undefined;
    if (performance.now() > until)
      return `it has not settled: ${Math.round(now)} MB, ${JSON.stringify(body.data ?? body.error)}`;
    await sleep(SETTLE_LOOK_MS);
  }
}

/** What the attackers were answered; undefined where the service ended before their time was over. */
async function outlives(server: ServerProcess, attackers: readonly Attacker[]) {
  const reports = Promise.all(attackers.map(({ report }) => report));
  const ended = server.exited.then(() => undefined);
  const first = await Promise.race([reports, ended]).finally(() => {
    for (const { kill } of attackers) kill();
  });
  await reports.catch(() => undefined);
  return first && merged(first);
}

const isLive = (ask: Ask) => async (): Promise<string | undefined> => {
  const { status, body } = await ask('GET', '/health/live');
  return status === 200 ? undefined : `${status} ${JSON.stringify(body).slice(0, 300)}`;
};

/** What is not as it must be once the attackers are gone. */
async function aftermath(
  { url, key, memory, neighbour }: Target & { memory: Memory; neighbour: Neighbour },
  report: Report,
): Promise<string[]> {
  const unsettled = await settle(url, memory);
  const lost = [...(await neighbour.missing()), ...(await lostBy(url, key, report))];
  return [
    ...(unsettled === undefined ? [] : [unsettled]),
    ...(lost.length > 0 ? [`acknowledged, and not there: ${lost.join(', ')}`] : []),
    ...report.oddities.map((oddity) => `an answer: ${oddity}`),
  ];
}

/** Options of the service that a single attack asks for. */
const serviceOptions = ({ names }: Siege): Record<string, string> =>
  names.length === 1 ? (ATTACKS[names[0]!].service ?? {}) : {};

/** A service, and the key of the account that attackers use. */
interface Target {
  url: string;
  key: string;
}

/** Who attacks, and its name in the table. */
export interface Siege {
  names: readonly AttackName[];
  attack?: string;
  /** Options of the attackers. */
  env?: Record<string, string>;
  seconds?: number;
}

/**
 * The service that was started again after the last attack. The next attack meets it, if it has the
 * same options: to start another one over the same data folder would show nothing more.
 */
let restarted: { server: ServerProcess; world: World; options: string } | undefined;

/** Ends the service that was started again after the last attack. */
export async function endSieges(): Promise<void> {
  restarted?.server.kill('SIGKILL');
  await restarted?.server.exited;
  restarted = undefined;
}

/** A service for an attack. */
async function serverFor(world: World, siege: Siege): Promise<ServerProcess> {
  const options = serviceOptions(siege);
  const { server } = restarted ?? {};
  if (server && restarted?.world === world && restarted.options === JSON.stringify(options)) {
    restarted = undefined;
    return server;
  }
  await endSieges();
  return startConfined(world, options);
}

/**
 * Starts the service, unless it was after the last attack; attacks it by all these names at once, looks
 * at what it and the account beside them make of it, and starts it again.
 */
export async function besiege(world: World, siege: Siege): Promise<Figures> {
  const server = await serverFor(world, siege);
  let figures: Figures;
  try {
    figures = await attacked(world, server, siege);
  } finally {
    server.kill('SIGKILL');
    await server.exited;
  }
  return { ...figures, faults: [...figures.faults, ...(await restartFaults(world, siege))] };
}

/** What is wrong with a start after the attack: later than it may be, too large, or not alive. */
async function restartFaults(world: World, siege: Siege): Promise<string[]> {
  const startedAt = performance.now();
  const options = serviceOptions(siege);
  const server = startConfined(world, options);
  restarted = { server, world, options: JSON.stringify(options) };
  const memory = watchMemory(server.pid);
  try {
    const url = await server.ready;
    const readyMs = Math.round(performance.now() - startedAt);
    await Promise.race([server.exited, sleep(RESTART.aliveMs)]);
    const failure = await isLive(asker(url, undefined, false))();
    const faults = [
      ...(readyMs > RESTART.readyMs ? [`a restart was ready after ${readyMs} ms`] : []),
      ...(memory.peak > BARS.peak ? [`a restart took ${Math.round(memory.peak)} MB`] : []),
      ...(failure === undefined ? [] : [`a restart: ${failure}`]),
    ];
    if (faults.length > 0) await endSieges();
    return faults;
  } catch (error) {
    await endSieges();
    return [`a restart: ${inspect(error).slice(0, 300)}`];
  } finally {
    memory.stop();
  }
}

async function attacked(
  world: World,
  server: ServerProcess,
  { names, attack = names.join(), env = {}, seconds = SECONDS }: Siege,
): Promise<Figures> {
  const url = await server.ready;
  const memory = watchMemory(server.pid);
  const issued = await newKey(world.env['DATA_DIR']!);
  await clientWith(url, issued);
  const neighbour = await startNeighbour(url, issued.api_key);
  const lives = startProbes(LIVE_EVERY_MS, isLive(asker(url, undefined)));
  const freshes = startProbes(FRESH_EVERY_MS, isLive(asker(url, undefined, false)));
  // The first run loads libraries, and so does the first one that fails: long steps, each once.
  const { key, agents: prey } = world.prey;
  await apiClient(url, key).post(`/v1/agents/${prey.faulty}/run`, { input: 'hi' });
  const quiet = {
    log: server.errors().length,
    steps: await longStepsOf({ url, key: issued.api_key }),
  };
  const meets = meetsOf(names);
  const attackers = names.map((name) =>
    startAttacker(name, { url, seconds, prey: world.prey, meets, env }),
  );
  let report: Report | undefined;
  try {
    report = await outlives(server, attackers);
  } finally {
    await Promise.all([neighbour.stop(), lives.stop(), freshes.stop()]);
  }

  const target = { url, key: world.prey.key, memory, neighbour };
  const faults =
    report === undefined
      ? []
      : await aftermath(target, report).catch((error: Error) => [
          `afterwards: ${inspect(error.cause ?? error).slice(0, 300)}`,
        ]);
  const after = memory.now();
  const longSteps =
    after === undefined ? 0 : (await longStepsOf({ url, key: issued.api_key })) - quiet.steps;
  memory.stop();
  server.kill('SIGTERM');
  const code = await Promise.race([server.exited, sleep(STOP_MS, undefined, { ref: false })]);
  if (code !== 0) faults.push(`it ended with ${code}: ${server.errors().slice(-600)}`);

  const steps = longStepsIn(server.errors().slice(quiet.log));
  const tooLong = steps.filter(({ cpu_ms }) => cpu_ms > BARS.stepMs);
  const isSlow = BARS.stepMs > LONG_STEP_MS ? tooLong.length > 0 : longSteps > 0;
  const figures: Seen = {
    attack,
    lived: after !== undefined,
    peak: memory.peak,
    after,
    live: timesOf(lives),
    small: { ...timesOf(neighbour), failed: neighbour.failed() },
    fresh: { count: freshes.times.length, failed: freshes.failed() },
    handles: memory.handles(),
    longestStep: Math.max(0, ...steps.map(({ cpu_ms }) => cpu_ms)),
    logged: server.logged() / 1_000_000,
    answers: report?.answers ?? {},
  };
  return {
    ...figures,
    faults: [
      ...faults,
      ...breaches(figures),
      ...(report === undefined ? [] : unmet(names, figures)),
      ...complaints(server, lives, neighbour),
      ...(isSlow ? [`${longSteps} long steps of the event loop`] : []),
      ...(isSlow ? tooLong.map(describeStep) : []),
    ],
  };
}

/** How many steps of the event loop were long, but for those of the garbage collector. */
async function longStepsOf({ url, key }: Pick<Target, 'url' | 'key'>): Promise<number> {
  const { text } = await scrape({ url, key });
  return valueOf(text, 'turnlog_event_loop_long_steps_total{cause="code"}');
}

/** The steps of the event loop that the service's log names. */
const longStepsIn = (log: string): LongStep[] =>
  log
    .split('\n')
    .filter((line) => line.includes('a step of the event loop took long'))
    .map((line) => JSON.parse(line) as LongStep);

const describeStep = ({ task, cpu_ms, gc_ms }: LongStep): string =>
  `a step of the event loop: ${task}, ${cpu_ms} ms, ${gc_ms} ms of them for the collector`;

type Seen = Omit<Figures, 'faults'>;

/** What an attack must meet. All at once, nobody can tell who of them was answered what. */
const meetsOf = (names: readonly AttackName[]): readonly string[] =>
  names.length === 1 ? ATTACKS[names[0]!].meets : [];

const unmet = (names: readonly AttackName[], { answers }: Seen): string[] =>
  meetsOf(names)
    .filter((kind) => answers[kind] === undefined)
    .map((kind) => `no attacker was ever answered ${kind}`);

/** The bars that were not held. */
function breaches({ peak, live, small, logged, answers }: Seen): string[] {
  const answered = Object.values(answers).reduce((sum, count) => sum + count, small.count);
  const bars: readonly [string, number, number][] = [
    ['resident memory, MB', peak, BARS.peak],
    [`/health/live ${TIMES.of}, ms`, live[TIMES.of], TIMES.live],
    [`the neighbour's requests ${TIMES.of}, ms`, small[TIMES.of], TIMES.small],
    ['log, bytes', logged * 1_000_000, LOG.perAnswer * answered + LOG.besides],
  ];
  return bars
    .filter(([, seen, bar]) => !(seen <= bar))
    .map(([what, seen, bar]) => `${what}: ${Math.round(seen)}, and at most ${bar}`);
}

function complaints(server: ServerProcess, lives: Probes, neighbour: Neighbour): string[] {
  return [
    ...lives.failures.map((failure) => `a liveness probe: ${failure}`),
    ...neighbour.failures.map((failure) => `the neighbour: ${failure}`),
    ...neighbour.searches.failures.map((failure) => `the neighbour: ${failure}`),
    ...(server.errors().includes(PROVIDER_SECRET) ? ["the log shows the provider's key"] : []),
  ];
}
