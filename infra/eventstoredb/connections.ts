import { setTimeout as sleep } from 'node:timers/promises';
import { storeUnavailable } from '../../shared/errors.ts';
import type { StoreLogger } from './logger.ts';
import { openHostClient, type HostClient } from './clientInternals.ts';
import { parseConnectionString, type Host } from './connectionString.ts';
import { createDiscovery, type Found } from './discovery.ts';
import { leaderNamedBy, makesDoubtful } from './serverErrors.ts';
import { startPulse, type Pulse } from './pulse.ts';
import { createAskIfServing } from './serving.ts';
import { createRights, type Right } from './rights.ts';
import { createTroubleNotes } from './troubleNotes.ts';
import { Silence, troubleWith } from './trouble.ts';

/** Between two looks for a node to use. */
const LEAST_PAUSE_MS = 50;

/** One connection to the node in use. */
export interface Connection {
  client: HostClient;
  /** Aborted when the connection is given up. */
  lost: AbortSignal;
  /** To be called with everything that comes from the server. */
  heard(): void;
  /** How long the node may take to answer, by how long it took lately, in milliseconds. */
  patienceMs(): number;
}

export interface Connections {
  /** The connection to use now, once there is one. Errors: `store_unavailable` once closed, the signal's reason. */
  current(signal: AbortSignal): Promise<Connection>;
  /** Reports a call that failed: where that makes the node doubtful it is looked at, and given up when it can't serve. */
  failed(connection: Connection, error: unknown): void;
  /** Notes that the user lacks a right, and puts it into words. */
  denied(right: Right, error: unknown): Error;
  /** Notes that the user was allowed to do what it asked for. */
  allowed(right: Right): void;
  /** One sentence on why the store can't be used now; undefined while it can. */
  trouble(): string | undefined;
  /** Aborted when the store is closed. */
  closed: AbortSignal;
  /** Whether calls are to be answered by the leader: yes, unless the connection string prefers other nodes. */
  requiresLeader: boolean;
  close(): void;
}

interface Live extends Connection {
  host: Host;
  giveUp: AbortController;
  pulse: Pulse;
}

/**
 * Keeps one connection to the node that can be used: the leader, unless others are preferred. The node is asked all the time
 * whether it still is that one, because calls that are open tell nothing when it freezes or loses its quorum. Nothing here
 * ever rejects without being handled.
 * Errors: `configuration_invalid` when the text is not a connection string.
 */
export function createConnections(
  connectionString: string,
  logger: StoreLogger | undefined,
): Connections {
  const target = parseConnectionString(connectionString);
  // Options that the client does not take are told now, not at the first connection.
  for (const seed of target.seeds) openHostClient(target.of(seed)).close();
  if (target.ignored.length > 0)
    logger?.warn(
      { options: target.ignored },
      'the URL of the event store has options that have no effect',
    );
  const requiresLeader = target.preference === 'leader';
  const closed = new AbortController();
  const askIfServing = createAskIfServing(requiresLeader);
  const discovery = createDiscovery({
    target,
    requiresLeader,
    askIfServing,
    closed: closed.signal,
  });
  const notes = createTroubleNotes(logger);
  const rights = createRights(logger);
  let live: Live | undefined;
  let seeking: Promise<void> | undefined;
  let nudge = new AbortController();
  /** Who waits for a connection. Each leaves when it gives up, or an outage would collect them. */
  const waiting = new Set<() => void>();

  function give(up: Live, reason: Error): void {
    up.giveUp.abort(reason);
    up.client.close();
    if (live === up) live = undefined;
  }

  function use(found: Found): void {
    const before = live;
    live = begin(found);
    notes.set(found.trouble);
    if (before)
      give(
        before,
        storeUnavailable('The connection to the event store was given up for another one.'),
      );
    for (const proceed of waiting) proceed();
  }

  function begin({ host, client }: Found): Live {
    const giveUp = new AbortController();
    const lost = giveUp.signal;
    const note = (trouble: string | undefined): void => {
      if (live === node) notes.set(trouble);
    };
    const pulse = startPulse(
      { client, askIfServing, signal: lost },
      {
        well: () => note(undefined),
        refused: (error) => note(troubleWith(host, target, error)),
        lost: (error) => leave(node, error),
        silent() {
          note(troubleWith(host, target, new Silence()));
          seek();
        },
        revived() {
          discovery.hint(host);
          give(
            node,
            storeUnavailable('The connection to the event store was silent and is made anew.'),
          );
          seek();
        },
      },
    );
    const node: Live = {
      host,
      client,
      giveUp,
      lost,
      pulse,
      heard: pulse.heard,
      patienceMs: pulse.patienceMs,
    };
    return node;
  }

  async function seekOn(): Promise<void> {
    while (!closed.signal.aborted && (!live || live.pulse.isSilent())) {
      const found = await discovery.look().catch(() => undefined);
      if (found && (closed.signal.aborted || (live && !live.pulse.isSilent())))
        found.client.close();
      if (closed.signal.aborted || (live && !live.pulse.isSilent())) return;
      if (found) return use(found);
      if (!live) notes.set(discovery.trouble());
      nudge = new AbortController();
      const signal = AbortSignal.any([closed.signal, nudge.signal]);
      await sleep(Math.max(LEAST_PAUSE_MS, discovery.pauseMs()), undefined, {
        signal,
        ref: false,
      }).catch(() => undefined);
    }
  }

  /** Looks for a node to use, at once where it was about to wait. */
  function seek(): void {
    nudge.abort();
    seeking ??= seekOn().finally(() => {
      seeking = undefined;
      discovery.rest();
      // A connection may have been lost between the last look of the loop and its end.
      if (!live && !closed.signal.aborted) seek();
    });
  }

  function leave(doubtful: Live, error: unknown): void {
    const leader = leaderNamedBy(error);
    if (leader) discovery.hint(leader);
    if (live === doubtful) notes.set(troubleWith(doubtful.host, target, error));
    give(doubtful, storeUnavailable('The connection to the event store was given up.', error));
    seek();
  }

  const connected = (signal: AbortSignal): Promise<void> =>
    new Promise((resolve, reject) => {
      const leaveWith = (settle: () => void) => (): void => {
        waiting.delete(proceed);
        signal.removeEventListener('abort', abandon);
        closed.signal.removeEventListener('abort', abandon);
        settle();
      };
      const proceed = leaveWith(resolve);
      const abandon = leaveWith(() =>
        reject((closed.signal.aborted ? closed.signal : signal).reason as Error),
      );
      waiting.add(proceed);
      signal.addEventListener('abort', abandon);
      closed.signal.addEventListener('abort', abandon);
    });

  seek();

  return {
    async current(signal) {
      for (;;) {
        if (closed.signal.aborted) throw closed.signal.reason;
        signal.throwIfAborted();
        if (live) return live;
        await connected(signal);
      }
    },
    failed(connection, error) {
      if (live === undefined || connection !== live || !makesDoubtful(error)) return;
      if (leaderNamedBy(error)) leave(live, error);
      else live.pulse.ask();
    },
    denied: rights.denied,
    allowed: rights.allowed,
    trouble: () => notes.get() ?? rights.trouble(),
    closed: closed.signal,
    requiresLeader,
    close() {
      closed.abort(storeUnavailable('The event store is closed.'));
      if (live) give(live, closed.signal.reason as Error);
    },
  };
}
