const INTERVAL_MS = 500;

/** Writes a line of progress to standard error at most twice a second; on a terminal each one replaces the last. */
export function progressLine(write: (text: string) => void, isTerminal: boolean): { update: (text: () => string) => void; end: (text: string) => void } {
  let last = 0;
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
