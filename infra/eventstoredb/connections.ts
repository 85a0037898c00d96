import { storeUnavailableError } from '../../shared/lib/errors/turnlogError.ts';
import { openHostClient } from './clientInternals.ts';
import type { Connection, Connections } from './connection.ts';
import { parseConnectionString, type Host, type Target } from './connectionString.ts';
import { createDiscovery } from './discovery.ts';
import type { StoreLogger } from './logger.ts';
import { startPulse, type Pulse } from './pulse.ts';
import { createRights } from './rights.ts';
import { createSeek } from './seek.ts';
import { leaderNamedBy, makesDoubtful } from './serverErrors.ts';
import { createAskIfServing } from './serving.ts';
import { Silence, troubleWith } from './trouble.ts';
import { createTroubleNotes } from './troubleNotes.ts';
import type { Found } from './visit.ts';
import { createWaiting } from './waiting.ts';

interface Live extends Connection {
  host: Host;
  giveUp: AbortController;
  pulse: Pulse;
}

/** What the connection string says. A fault in it is told now, not at the first connection. */
function targetOf(connectionString: string, logger: StoreLogger | undefined): Target {
  const target = parseConnectionString(connectionString);
  for (const seed of target.seeds) openHostClient(target.of(seed)).close();
  if (target.ignored.length > 0)
    logger?.warn(
      { options: target.ignored },
      'the URL of the event store has options that have no effect',
    );
  return target;
}

/**
 * Keeps one connection to the node that can be used: the leader, unless others are preferred. The
 * node is asked all the time whether it still is that one, because calls that are open tell nothing
 * when it freezes or loses its quorum. Nothing here ever rejects without being handled.
 * Errors: `configuration_invalid` when the text is not a connection string.
 */
export function createConnections(
  connectionString: string,
  logger: StoreLogger | undefined,
): Connections {
  const target = targetOf(connectionString, logger);
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
  const waiting = createWaiting(closed.signal);
  let live: Live | undefined;

  const seek = createSeek({
    discovery,
    closed: closed.signal,
    isWanted: () => !live || live.pulse.isSilent(),
    isInUse: () => live !== undefined,
    use,
    onTrouble: notes.set,
  });

  function give(up: Live, reason: Error): void {
    up.giveUp.abort(reason);
    up.client.close();
    if (live === up) live = undefined;
  }

  function use(found: Found): void {
    const before = live;
    live = begin(found);
    notes.set(found.trouble);
    const reason = 'The connection to the event store was given up for another one.';
    if (before) give(before, storeUnavailableError(reason));
    waiting.proceed();
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
          const reason = 'The connection to the event store was silent and is made anew.';
          discovery.hint(host);
          give(node, storeUnavailableError(reason));
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

  function leave(doubtful: Live, error: unknown): void {
    const leader = leaderNamedBy(error);
    if (leader) discovery.hint(leader);
    if (live === doubtful) notes.set(troubleWith(doubtful.host, target, error));
    give(doubtful, storeUnavailableError('The connection to the event store was given up.', error));
    seek();
  }

  seek();

  return {
    async current(signal) {
      for (;;) {
        if (closed.signal.aborted) throw closed.signal.reason;
        signal.throwIfAborted();
        if (live) return live;
        await waiting.wait(signal);
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
      closed.abort(storeUnavailableError('The event store is closed.'));
      if (live) give(live, closed.signal.reason as Error);
    },
  };
}
