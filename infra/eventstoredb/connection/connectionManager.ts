import { addAbortListener } from 'node:events';
import {
  storeUnavailableError,
  type TurnlogError,
} from '../../../shared/lib/errors/turnlogError.ts';
import { sleepUntilAborted } from '../../../shared/lib/time/sleep.ts';
import type { Position } from '../../../shared/ports/eventStore.ts';
import { parseConnectionString, type ConnectionTarget, type Host } from './connectionString.ts';
import { createDiscovery, type Discovery, type UsableNode } from './discovery.ts';
import { createReadinessCheck, startHeartbeat, type Heartbeat } from './heartbeat.ts';
import { openHostClient, type HostClient } from './hostClient.ts';
import { isUnauthenticated, leaderFromError, suggestsNodeFailure } from './serverErrors.ts';
import {
  createAccessDenials,
  createFalseAnswers,
  createTroubleLog,
  describeHostError,
  describeSilentHost,
  NO_ANSWER,
  type RequiredRight,
  type StoreLogger,
} from './troubleLog.ts';

/** A connection to the node in use. */
export interface NodeConnection {
  client: HostClient;
  /** Aborts when the connection is abandoned. */
  lost: AbortSignal;
  /** Call this for everything that the node sends. */
  recordActivity(): void;
  /** How long the node may stay silent, in milliseconds, based on its last answer. */
  silenceLimitMs(): number;
}

/** The cluster has no quorum, or no node could be used for longer than a call waits. */
export class StoreAwayError extends Error {
  constructor(trouble: string | undefined) {
    super(trouble ?? NO_ANSWER);
  }
}

export interface ConnectionManager {
  /**
   * Waits for a connection. Throws `store_unavailable` when closed, the abort reason, or, with
   * `failsWhileAway`, StoreAwayError.
   */
  current(signal: AbortSignal, options?: { failsWhileAway: boolean }): Promise<NodeConnection>;
  /** Reports a failed call. The node is checked, and abandoned if it can't serve. */
  reportFailure(connection: NodeConnection, error: unknown): void;
  /** Records that the user lacks a right. Returns an error that names the right. */
  recordDenied(right: RequiredRight, error: unknown): Error;
  /** Records a successful call. */
  recordAllowed(right: RequiredRight): void;
  /** Records an append acknowledged beyond the end of the log, as a trouble. Returns the error. */
  reportFalsePosition(position: Position): TurnlogError;
  /** One sentence on why the store can't be used now; undefined while it can. */
  trouble(): string | undefined;
  /** Aborts when the store is closed. */
  closed: AbortSignal;
  /** Whether the leader must answer. False when the connection string prefers other nodes. */
  requiresLeader: boolean;
  close(): void;
}

interface ConnectionWaiters {
  /** Resolves at the next `releaseAll`. Throws the reason of the signal or of `closed`. */
  wait(signal: AbortSignal): Promise<void>;
  releaseAll(): void;
}

/** Calls that wait for a connection. A call that stops waiting is removed. */
function createConnectionWaiters(closed: AbortSignal): ConnectionWaiters {
  const waiters = new Set<() => void>();
  return {
    async wait(signal) {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      using _closing = addAbortListener(closed, () => reject(closed.reason));
      using _aborting = addAbortListener(signal, () => reject(signal.reason));
      waiters.add(resolve);
      try {
        await promise;
      } finally {
        waiters.delete(resolve);
      }
    },
    releaseAll() {
      for (const release of waiters) release();
    },
  };
}

/** The minimum pause between two rounds of discovery, in milliseconds. */
const MIN_ROUND_PAUSE_MS = 50;

interface ReconnectOptions {
  discovery: Discovery;
  closed: AbortSignal;
  /** Whether a node is needed: there is none, or it is silent. */
  needsNode: () => boolean;
  /** Whether a node is in use, silent or not. */
  hasNode: () => boolean;
  onNode: (node: UsableNode) => void;
  /** Receives the trouble of a round that found no node while none is in use. */
  onTrouble: (trouble: string) => void;
}

/**
 * Runs discovery while a node is needed. The returned function starts it, or ends the current pause
 * when it is already running.
 */
function createReconnect({
  discovery,
  closed,
  needsNode,
  hasNode,
  onNode,
  onTrouble,
}: ReconnectOptions): () => void {
  let running: Promise<void> | undefined;
  let wakeUp = new AbortController();

  const shouldContinue = (): boolean => !closed.aborted && needsNode();

  async function runDiscovery(): Promise<void> {
    while (shouldContinue()) {
      const node = await discovery.findNode().catch(() => undefined);
      if (!shouldContinue()) return node?.client.close();
      if (node) return onNode(node);
      if (!hasNode()) onTrouble(discovery.trouble());
      wakeUp = new AbortController();
      const signal = AbortSignal.any([closed, wakeUp.signal]);
      const pauseMs = Math.max(MIN_ROUND_PAUSE_MS, discovery.nextAttemptInMs());
      await sleepUntilAborted(pauseMs, { signal, ref: false });
    }
  }

  return function reconnect(): void {
    wakeUp.abort();
    running ??= runDiscovery().finally(() => {
      running = undefined;
      discovery.stop();
      // The connection may have been lost between the last round and the end of the loop.
      if (!hasNode() && !closed.aborted) reconnect();
    });
  };
}

interface ActiveConnection extends NodeConnection {
  host: Host;
  lostController: AbortController;
  heartbeat: Heartbeat;
}

/** Parses the connection string and lets the client validate it before the first connection. */
function validateTarget(
  connectionString: string,
  logger: StoreLogger | undefined,
): ConnectionTarget {
  const target = parseConnectionString(connectionString);
  for (const seed of target.seeds) openHostClient(target.connectionTo(seed)).close();
  if (target.ignoredOptions.length > 0)
    logger?.warn(
      { options: target.ignoredOptions },
      'the URL of the event store has options that have no effect',
    );
  return target;
}

/**
 * Keeps one connection to the leader, or to another node if the connection string prefers that. A
 * heartbeat checks the node, because open calls do not fail when it freezes or loses its quorum.
 * `awayAfterMs` is how long calls wait for a node before it counts as known that there is none. Throws
 * `configuration_invalid` for an invalid connection string.
 */
export function createConnectionManager(
  connectionString: string,
  logger: StoreLogger | undefined,
  awayAfterMs: number,
): ConnectionManager {
  const target = validateTarget(connectionString, logger);
  const requiresLeader = target.nodePreference === 'leader';
  const closing = new AbortController();
  const closed = closing.signal;
  const checkReadiness = createReadinessCheck(requiresLeader);
  const discovery = createDiscovery({ target, requiresLeader, checkReadiness, closed });
  const troubleLog = createTroubleLog(logger);
  const accessDenials = createAccessDenials(logger);
  const falseAnswers = createFalseAnswers(logger);
  const waiters = createConnectionWaiters(closed);
  let active: ActiveConnection | undefined;

  const reconnect = createReconnect({
    discovery,
    closed,
    needsNode: () => !active || active.heartbeat.isSilent(),
    hasNode: () => active !== undefined,
    onNode: activate,
    onTrouble(trouble) {
      troubleLog.set(trouble);
      if (isAway()) waiters.releaseAll();
    },
  });

  const isAway = (): boolean =>
    (!active || active.heartbeat.isSilent()) &&
    (discovery.lacksQuorum() || troubleLog.lastsMs() >= awayAfterMs);

  function abandon(connection: ActiveConnection, reason: Error): void {
    connection.lostController.abort(reason);
    connection.client.close();
    if (active === connection) active = undefined;
  }

  function activate(node: UsableNode): void {
    const previous = active;
    active = createActiveConnection(node);
    troubleLog.set(node.trouble);
    if (previous)
      abandon(
        previous,
        storeUnavailableError('The connection to the event store was replaced by another one.'),
      );
    waiters.releaseAll();
  }

  function createActiveConnection({ host, client, ...node }: UsableNode): ActiveConnection {
    let isUserAccepted = node.trouble === undefined;
    const lostController = new AbortController();
    const lost = lostController.signal;
    const setTrouble = (trouble: string | undefined): void => {
      if (active === connection) troubleLog.set(trouble);
    };
    const heartbeat = startHeartbeat(
      { client, checkReadiness, signal: lost },
      {
        onReady() {
          isUserAccepted = true;
          setTrouble(undefined);
        },
        onRefused(error) {
          // Open calls outlive a change of the password. Without them, calls fail as new ones do.
          if (isUserAccepted && isUnauthenticated(error))
            return abandonAndReconnect(connection, error);
          setTrouble(describeHostError(host, target, error));
        },
        onLost: (error) => abandonAndReconnect(connection, error),
        onSilent() {
          setTrouble(describeSilentHost(host));
          reconnect();
        },
        onRevived() {
          discovery.resetBackoff(host);
          abandon(
            connection,
            storeUnavailableError('The connection to the event store was silent and is replaced.'),
          );
          reconnect();
        },
      },
    );
    const connection: ActiveConnection = {
      host,
      client,
      lostController,
      lost,
      heartbeat,
      recordActivity: heartbeat.recordActivity,
      silenceLimitMs: heartbeat.silenceLimitMs,
    };
    return connection;
  }

  function abandonAndReconnect(connection: ActiveConnection, error: unknown): void {
    const leader = leaderFromError(error);
    if (leader) discovery.resetBackoff(leader);
    if (active === connection) troubleLog.set(describeHostError(connection.host, target, error));
    abandon(
      connection,
      storeUnavailableError('The connection to the event store was abandoned.', error),
    );
    reconnect();
  }

  reconnect();

  return {
    async current(signal, { failsWhileAway } = { failsWhileAway: false }) {
      for (;;) {
        if (closed.aborted) throw closed.reason;
        signal.throwIfAborted();
        if (failsWhileAway && isAway()) throw new StoreAwayError(troubleLog.current());
        if (active) return active;
        await waiters.wait(signal);
      }
    },
    reportFailure(connection, error) {
      if (active === undefined || connection !== active || !suggestsNodeFailure(error)) return;
      if (leaderFromError(error)) abandonAndReconnect(active, error);
      else active.heartbeat.checkNow();
    },
    recordDenied: accessDenials.recordDenied,
    recordAllowed: accessDenials.recordAllowed,
    reportFalsePosition: falseAnswers.report,
    trouble: () => troubleLog.current() ?? accessDenials.trouble() ?? falseAnswers.trouble(),
    closed,
    requiresLeader,
    close() {
      closing.abort(storeUnavailableError('The event store is closed.'));
      if (active) abandon(active, closed.reason as Error);
    },
  };
}
