import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

export interface Answered {
  status: number;
  body: any;
}

export type Ask = (method: 'GET' | 'POST', path: string, body?: unknown) => Promise<Answered>;

export interface Probes {
  /** Milliseconds, one each. */
  times: number[];
  /** What was not answered with 2xx, the first of it. */
  failures: string[];
  /** How much of it there was. */
  failed(): number;
  stop(): Promise<void>;
}

/** Longer than any answer may take, shorter than a test waits. In ms. */
const LIMIT_MS = 30_000;
const FAILURES = 10;

/** Sends JSON over one connection, or over a new one each time. */
export function asker(url: string, key: string | undefined, keepAlive = true): Ask {
  const { hostname, port } = new URL(url);
  const agent = new Agent({ keepAlive, maxSockets: 1 });
  return (method, path, body) =>
    new Promise((resolve, reject) => {
      const headers: Record<string, string> = {
        ...(key !== undefined && { 'x-api-key': key }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
      };
      const sent = request({ hostname, port, method, path, headers, agent }, (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
        response.on('error', reject);
        response.on('end', () => {
          clearTimeout(timer);
          try {
            resolve({ status: response.statusCode!, body: JSON.parse(text) });
          } catch (error) {
            reject(error);
          }
        });
      });
      const timer = setTimeout(
        () => sent.destroy(new Error(`no answer in ${LIMIT_MS} ms`)),
        LIMIT_MS,
      );
      sent.on('error', (error) => {
        clearTimeout(timer);
        reject(error);
      });
      sent.end(body === undefined ? undefined : JSON.stringify(body));
    });
}

/**
 * Does something every so many milliseconds, one at a time. What was due while one was waited for
 * counts as if it had been sent, and answered together with that one: a stall is not hidden by what
 * it held back.
 */
export function startProbes(everyMs: number, probe: () => Promise<string | undefined>): Probes {
  const probes = { times: [] as number[], failures: [] as string[] };
  const over = new AbortController();
  let failed = 0;

  async function go(): Promise<void> {
    for (let due = performance.now(); !over.signal.aborted;) {
      await sleep(Math.max(0, due - performance.now()));
      if (over.signal.aborted) return;
      due = performance.now();
      const failure = await probe().catch((error: Error) => error.message);
      const answered = performance.now();
      do probes.times.push(answered - due);
      while ((due += everyMs) < answered);
      if (failure === undefined) continue;
      failed += 1;
      if (probes.failures.length < FAILURES) probes.failures.push(failure);
    }
  }

  const gone = go();
  return {
    ...probes,
    failed: () => failed,
    async stop() {
      over.abort();
      await gone;
    },
  };
}

export const percentile = (times: readonly number[], share: number): number => {
  const sorted = times.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
};
