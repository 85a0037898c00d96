import fc from 'fast-check';
import { apiFeatures } from '../../../../services/api/features.ts';

/** What one kind of client of a mix does, again and again. Plain data, so that it can be printed. */
export interface MixClient {
  /** `post /v1/agents/{agentId}/run`. */
  route: string;
  /** Whose ids are in the path. */
  ids: (typeof IDS)[number];
  /** The model of agents. */
  model: (typeof MODELS)[number];
  body: (typeof BODIES)[number];
  /** How large the text of the body is, about. */
  bytes: number;
  query: readonly string[];
  headers: readonly string[];
  read: (typeof READS)[number];
  /** When it ends its requests; null where it waits for their answers. */
  abortMs: number | null;
  /** How many clients do the same. */
  clients: number;
}
export type Mix = readonly MixClient[];

const IDS = ['own', 'largest', 'strange', 'malformed'] as const;
const BODIES = ['valid', 'none', 'fields', 'nested', 'garbage'] as const;
const READS = ['all', 'slowly', 'never'] as const;
const MODELS = ['quick', 'narrow', 'large', 'slow', 'faulty', 'calling', 'talking'] as const;
const BYTES = [1, 1_000, 30_000, 250_000, 520_000, 1_100_000];
const ABORTS_MS = [500, 50, 5, 0];

/** Values of query parameters; a request has those that its route knows. */
export const QUERY: Readonly<Record<string, string>> = {
  limit: '1000',
  pretty: 'true',
  order: 'newest',
  q: 'word',
  status: 'running',
  label: 'a:b',
  created_from: '2020-01-01T00:00:00.000Z',
  by: 'agent',
  format: 'otel',
  wait: '10',
  from: 'start',
  after: 'x',
};

/** Headers beside those of every request. */
export const HEADERS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  stream: { accept: 'text/event-stream' },
  wait: { prefer: 'wait=5' },
  background: { prefer: 'respond-async' },
  packed: { 'accept-encoding': 'gzip, br' },
  keyed: { 'idempotency-key': 'the-same-for-all' },
  conditional: { 'if-none-match': '"x"', 'if-match': '"x"' },
  chunked: { 'transfer-encoding': 'chunked' },
  expecting: { expect: '100-continue' },
  text: { 'content-type': 'text/plain' },
  long: { 'x-padding': 'x'.repeat(14_000) },
  keyless: { 'x-api-key': 'tl_wrong' },
};

const ROUTES = apiFeatures.routes.map(({ method, path }) => `${method} ${path}`);
const RUN = 'post /v1/agents/{agentId}/run';

/** Shrinks towards the first of each. */
const client: fc.Arbitrary<MixClient> = fc.record({
  // Runs do more than other requests.
  route: fc.oneof(fc.constantFrom(...ROUTES), fc.constant(RUN)),
  ids: fc.oneof(fc.constantFrom('own' as const, 'largest' as const), fc.constantFrom(...IDS)),
  model: fc.constantFrom(...MODELS),
  body: fc.oneof(fc.constant('valid' as const), fc.constantFrom(...BODIES)),
  bytes: fc.constantFrom(...BYTES),
  query: fc.subarray(Object.keys(QUERY), { maxLength: 4 }),
  headers: fc.subarray(Object.keys(HEADERS), { maxLength: 2 }),
  read: fc.oneof(fc.constant('all' as const), fc.constantFrom(...READS)),
  // Most requests wait for their answers.
  abortMs: fc.oneof(
    { arbitrary: fc.constant(null), weight: 3 },
    { arbitrary: fc.constantFrom(...ABORTS_MS), weight: 1 },
  ),
  clients: fc.integer({ min: 1, max: 48 }),
});

/** Random mixes of clients. */
const mixes: fc.Arbitrary<Mix> = fc.array(client, { minLength: 1, maxLength: 8, size: 'max' });

/** A mix that failed: the smallest that was found. */
export interface FailedMix {
  mix: Mix;
  faults: readonly string[];
}

/**
 * Executes the mix of a seed. If it fails, executes smaller ones, at most `attempts`, and resolves
 * with the smallest that fails as well; with undefined if the mix does not fail.
 */
export async function tryMix(
  seed: number,
  attempts: number,
  execute: (mix: Mix, isSmaller: boolean) => Promise<readonly string[]>,
): Promise<FailedMix | undefined> {
  let failed: FailedMix | undefined;
  let left = attempts;
  const property = fc.asyncProperty(mixes, async (mix) => {
    if (failed && left === 0) return;
    if (failed) left -= 1;
    const faults = await execute(mix, failed !== undefined);
    if (faults.length === 0) return;
    failed = { mix, faults };
    throw new Error(faults.join());
  });
  await fc.check(property, { seed, numRuns: 1 });
  return failed;
}
