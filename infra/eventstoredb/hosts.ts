import { backoffMs } from '../../shared/lib/time/backoff.ts';
import { hostName, type Host } from './connectionString.ts';

/** How soon a host is asked again whose answer does not help yet, in milliseconds. */
const POLL_MS = 250;
/** Spread, so that many clients of one host don't come in step. */
const PAUSES = { firstMs: 250, longestMs: 5_000, spread: [1, 1.25] } as const;
/** Where nobody listens a try costs nothing, and a listener is to be seen soon. */
const REFUSED_PAUSES = { ...PAUSES, longestMs: 1_000 };
/** Hosts that nodes have named, seeds included: more than a cluster ever has. */
const MOST_HOSTS = 32;

interface Known {
  host: Host;
  failures: number;
  nextTryAt: number;
  trouble: string | undefined;
}

/**
 * The hosts that may be tried, each with a back-off of its own. Times are in milliseconds of
 * `performance.now`.
 */
export interface Hosts {
  /** Those whose time has come. */
  due(): Host[];
  /** True when that host may be tried now. */
  isDue(host: Host): boolean;
  /** In how many milliseconds the next one's time comes. */
  pauseMs(): number;
  learn(host: Host): void;
  /**
   * The host answers. Whether that helps is another question: `trouble` says what is wrong with it.
   */
  answered(host: Host, trouble?: string): void;
  failed(host: Host, trouble: string, refused: boolean): void;
  /** The host is being tried, and this is what is to be said of it meanwhile. */
  note(host: Host, trouble: string | undefined): void;
  /** One host can be used: what was wrong with the others is of no interest any more. */
  clear(): void;
  /** The host may be tried at once, because something new is known of it. */
  forgive(host: Host): void;
  /** What is wrong with each host of which something is, the first one first. */
  troubles(): string[];
}

export function createHosts(seeds: readonly Host[]): Hosts {
  const hosts = new Map<string, Known>();
  const named = new Set(seeds.map(hostName));

  const learn = (host: Host): void => {
    const name = hostName(host);
    if (hosts.has(name)) return;
    hosts.set(name, { host, failures: 0, nextTryAt: 0, trouble: undefined });
    // The one that was learnt first goes first: where addresses change, it is the least likely to
    // be one still.
    if (hosts.size > MOST_HOSTS)
      hosts.delete([...hosts.keys()].find((known) => !named.has(known)) ?? name);
  };
  const update = (host: Host, change: (known: Known) => void): void => {
    const known = hosts.get(hostName(host));
    if (known) change(known);
  };
  for (const seed of seeds) learn(seed);

  return {
    due: () =>
      [...hosts.values()]
        .filter(({ nextTryAt }) => nextTryAt <= performance.now())
        .map(({ host }) => host),
    isDue: (host) => (hosts.get(hostName(host))?.nextTryAt ?? 0) <= performance.now(),
    pauseMs: () =>
      Math.max(
        0,
        Math.min(...[...hosts.values()].map(({ nextTryAt }) => nextTryAt)) - performance.now(),
      ),
    learn,
    answered: (host, trouble) =>
      update(host, (known) =>
        Object.assign(known, { failures: 0, nextTryAt: performance.now() + POLL_MS, trouble }),
      ),
    failed: (host, trouble, refused) =>
      update(host, (known) => {
        const pauseMs = backoffMs(refused ? REFUSED_PAUSES : PAUSES, known.failures);
        Object.assign(known, {
          failures: known.failures + 1,
          nextTryAt: performance.now() + pauseMs,
          trouble,
        });
      }),
    note: (host, trouble) => update(host, (known) => Object.assign(known, { trouble })),
    clear: () => hosts.forEach((known) => Object.assign(known, { trouble: undefined })),
    forgive: (host) => update(host, (known) => Object.assign(known, { failures: 0, nextTryAt: 0 })),
    troubles: () => [...new Set([...hosts.values()].flatMap(({ trouble }) => trouble ?? []))],
  };
}
