/** An answer, and the processor time that it took in milliseconds. */
export interface TimedAnswer<Answer> {
  answer: Answer;
  cpuMs: number;
}

/**
 * The processor time of this thread in milliseconds. On a busy machine the time that passes is
 * several times as long.
 */
export function threadCpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

/** Runs work and measures it. */
export function measureProcessorTime<Answer>(work: () => Answer): TimedAnswer<Answer> {
  const began = threadCpuMs();
  const answer = work();
  return { answer, cpuMs: threadCpuMs() - began };
}
