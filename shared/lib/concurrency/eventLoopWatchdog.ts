import { AsyncLocalStorage } from 'node:async_hooks';
import { PerformanceObserver } from 'node:perf_hooks';
import { threadCpuMs } from '../time/processorTime.ts';

/** A step of the event loop that used the CPU for too long. */
export interface LongStep {
  /** The running task, if it is known: a route, a follower, periodic work. */
  task: string;
  /** CPU time of the step, and the part of it that the garbage collector took. */
  cpu_ms: number;
  gc_ms: number;
}

interface WatchdogOptions {
  onLongStep: (step: LongStep) => void;
  /** Receives, 50 times a second, how many milliseconds late a timer is. */
  onDelay: (ms: number) => void;
}

/** CPU time from which a step is reported. */
export const LONG_STEP_MS = 50;
const TICK_MS = 20;
/** The age of a CPU time that is still compared with. Reading it takes a microsecond. */
const SAMPLE_MS = 10;
const UNKNOWN = 'unknown';

const tasks = new AsyncLocalStorage<string>();

/** The running step: it began when the task was set, and ends when another one is. */
let current = { task: UNKNOWN, since: 0 };
let sampled = { at: 0, cpuMs: 0 };
let report:
  ((step: { task: string; since: number }, until: number, cpuMs: number) => void) | undefined;

/**
 * Ends the step and begins one of a task. CPU time counts, so that a process that waits for the CPU
 * of a busy machine reports nothing.
 */
function beginStep(task: string): void {
  if (!report) return;
  const now = performance.now();
  if (now - sampled.at >= SAMPLE_MS) {
    const cpuMs = threadCpuMs();
    const usedMs = Math.min(cpuMs - sampled.cpuMs, now - current.since);
    if (usedMs > LONG_STEP_MS) report(current, now, usedMs);
    sampled = { at: now, cpuMs };
  }
  current = { task, since: now };
}

/** Runs work, and what it awaits, under a name for the watchdog that no client chooses. */
export const runTask = <Result>(task: string, work: () => Result): Result =>
  tasks.run(task, () => {
    beginStep(task);
    return work();
  });

/** Tells the watchdog that the task of the caller continues after a wait. */
export const resumeTask = (): void => beginStep(tasks.getStore() ?? UNKNOWN);

/** Watches the event loop of this thread until it is disposed of. */
export function startWatchdog({ onLongStep, onDelay }: WatchdogOptions): Disposable {
  const collections: { start: number; ms: number }[] = [];
  const collector = new PerformanceObserver((list) => {
    for (const { startTime, duration } of list.getEntries())
      collections.push({ start: startTime, ms: duration });
    // Those of the last seconds suffice.
    collections.splice(0, collections.length - 100);
  });
  collector.observe({ entryTypes: ['gc'] });
  report = ({ task, since }, until, cpuMs) => {
    const tell = (): void => {
      const gc = collections.filter(({ start }) => start >= since && start < until);
      const gcMs = gc.reduce((total, { ms }) => total + ms, 0);
      onLongStep({ task, cpu_ms: Math.round(cpuMs), gc_ms: Math.round(Math.min(gcMs, cpuMs)) });
    };
    // Node.js tells of collections one turn of the event loop later.
    setImmediate(() => setImmediate(tell));
  };
  let tickedAt = performance.now();
  current = { task: UNKNOWN, since: tickedAt };
  sampled = { at: tickedAt, cpuMs: threadCpuMs() };
  const timer = setInterval(() => {
    beginStep(UNKNOWN);
    const now = performance.now();
    onDelay(Math.max(0, now - tickedAt - TICK_MS));
    tickedAt = now;
  }, TICK_MS).unref();
  return {
    [Symbol.dispose]() {
      clearInterval(timer);
      collector.disconnect();
      report = undefined;
    },
  };
}
