/**
 * One Ctrl-C may arrive twice: the terminal sends SIGINT to all processes in its foreground, and npm
 * forwards its own to the command that it runs.
 */
const SAME_REQUEST_MS = 1_000;

/**
 * Calls `stop` at the first SIGTERM or SIGINT. Another one within a second is the same request; a
 * later one ends the process at once.
 */
export function onStopSignal(stop: (name: NodeJS.Signals) => void): void {
  let stoppedAt: number | undefined;
  const handle = (name: NodeJS.Signals): void => {
    if (stoppedAt === undefined) {
      stoppedAt = performance.now();
      stop(name);
    } else if (performance.now() - stoppedAt >= SAME_REQUEST_MS) {
      // Without a listener, the signal has its default action.
      process.off(name, handle);
      process.kill(process.pid, name);
    }
  };
  for (const name of ['SIGTERM', 'SIGINT'] as const) process.on(name, handle);
}
