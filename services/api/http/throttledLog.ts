const LOG_INTERVAL_MS = 10_000;

/**
 * For what happens as often as clients like: the log is told at once, and then once in 10 s at the
 * most, with how often it happened since.
 */
export function throttledLog<Case>(tell: (times: number, latest: Case) => void) {
  let times = 0;
  let toldAt = -Infinity;
  return (latest: Case): void => {
    times += 1;
    const now = performance.now();
    if (now - toldAt < LOG_INTERVAL_MS) return;
    toldAt = now;
    tell(times, latest);
    times = 0;
  };
}
