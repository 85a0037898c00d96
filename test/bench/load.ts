import { Pool } from 'undici';

export interface Call {
  method: 'GET' | 'POST';
  path: string;
  headers?: Record<string, string>;
  body?: string;
}

export interface Load {
  perSecond: number;
  /** Milliseconds. */
  p50: number;
  p99: number;
  calls: number;
}

export interface LoadOptions {
  url: string;
  connections: number;
  /** Ends after this time… */
  milliseconds?: number;
  /** …or after this many calls. */
  calls?: number;
  call: (index: number) => Call;
  /** Looks at an answer; not called when absent, so that the load costs as little as it can. */
  onAnswer?: (body: string) => void;
}

const percentile = (sorted: readonly number[], share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;

/**
 * Closed loop: every connection sends its next call when its last one was answered. Any status but
 * 200 is an error.
 */
export async function applyLoad({
  url,
  connections,
  milliseconds = 60_000,
  calls = Infinity,
  call,
  onAnswer,
}: LoadOptions): Promise<Load> {
  const pool = new Pool(url, { connections, pipelining: 1 });
  const latencies: number[] = [];
  const began = performance.now();
  const end = began + milliseconds;
  let sent = 0;
  const connection = async (): Promise<void> => {
    while (sent < calls && performance.now() < end) {
      const start = performance.now();
      const response = await pool.request(call(sent++));
      const body = await response.body.text();
      latencies.push(performance.now() - start);
      if (response.statusCode !== 200)
        throw new Error(`status ${response.statusCode}: ${body.slice(0, 300)}`);
      onAnswer?.(body);
    }
  };
  await Promise.all(Array.from({ length: connections }, connection));
  const seconds = (performance.now() - began) / 1_000;
  await pool.close();
  latencies.sort((a, b) => a - b);
  return {
    perSecond: latencies.length / seconds,
    p50: percentile(latencies, 0.5),
    p99: percentile(latencies, 0.99),
    calls: latencies.length,
  };
}

export const median = (values: readonly number[]): number =>
  percentile(
    values.toSorted((a, b) => a - b),
    0.5,
  );
