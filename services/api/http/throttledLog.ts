const LOG_INTERVAL_MS = 10_000;

/**
 * Logs events that clients can cause at any rate: the first one at once, then at most one line per
 * 10 s with the number of events since the line before.
 */
export function throttledLog<Case>(log: (times: number, latest: Case) => void) {
  let times = 0;
  let loggedAt = -Infinity;
  return (latest: Case): void => {
    times += 1;
    const now = performance.now();
    if (now - loggedAt < LOG_INTERVAL_MS) return;
    loggedAt = now;
    log(times, latest);
    times = 0;
  };
}
