import { setTimeout as sleep } from 'node:timers/promises';
import { applyLoad, type LoadOptions } from './load.ts';
import { CPU_PARTS, type BenchProcess, type CpuTime } from './process.ts';

/** The CPU time of all threads. */
export const allOf = (time: CpuTime): number =>
  CPU_PARTS.reduce((sum, part) => sum + time[part], 0);

interface Measurement extends Pick<BenchProcess, 'cpuTime'> {
  load: LoadOptions;
  /** How long the process works on after the last answer. */
  settleMs: number;
}

/** CPU time of a call in microseconds, with the work that follows its answer. */
export async function cpuPerCall({ cpuTime, load, settleMs }: Measurement): Promise<CpuTime> {
  const before = cpuTime();
  const { calls } = await applyLoad(load);
  await sleep(settleMs);
  const after = cpuTime();
  return Object.fromEntries(
    CPU_PARTS.map((part) => [part, (after[part] - before[part]) / calls]),
  ) as CpuTime;
}
