const INTERVAL_MS = 500;

/** The rate since a time of `performance.now()`, such as `1200/s`. */
export const formatRate = (count: number, began: number): string =>
  `${Math.round((1_000 * count) / (performance.now() - began))}/s`;

/**
 * Writes progress to standard error, the first line at once and then at most two per second; on a
 * terminal each line replaces the last one.
 */
export function createProgressLine(
  write: (text: string) => void,
  isTerminal: boolean,
): { update: (text: () => string) => void; end: (text: string) => void } {
  let last = Number.NEGATIVE_INFINITY;
  const put = (text: string): void => write(isTerminal ? `\r\u001B[K${text}` : `${text}\n`);
  return {
    update: (text) => {
      const now = performance.now();
      if (now - last < INTERVAL_MS) return;
      last = now;
      put(text());
    },
    end: (text) => put(isTerminal ? `${text}\n` : text),
  };
}
