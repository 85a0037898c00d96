import { randomInt } from 'node:crypto';

/** All times are milliseconds. */
const TICK_MS = 50;
/** How often a node gives a sign of life, and a leader tells what is committed. */
export const HEARTBEAT_MS = 200;
/** A member that is silent for so long is called dead. */
export const DEAD_MS = 1000;
/** When another one is called dead, a member that is silent for so long is called dead with it. */
export const DOUBTED_MS = 500;
/** Who heard the leader within so long votes for nobody else. */
export const FAITHFUL_MS = 700;
/**
 * A leader that heard less than a majority for so long leads no more. Longer than DEAD_MS: gossip
 * tells of the dead first.
 */
export const QUORUM_LOST_MS = 2000;
/** When a batch has not been confirmed for so long by a member that is alive, it is sent again. */
export const RESEND_MS = 500;
/**
 * A server gives up an append that is not committed after so long (`CommitTimeoutMs` in
 * EventStore.Core).
 */
export const COMMIT_TIMEOUT_MS = 2000;
/** How long a follower waits for the leader's answer to a write that it passed on. */
export const FORWARD_TIMEOUT_MS = 10_000;

/**
 * How long a node waits for a leader before it wants to be one; random, so that two rarely want it
 * at once.
 */
export const electionTimeout = (): number => randomInt(1000, 1500);
/** The same when the leader has said that it steps down. */
export const successionTimeout = (): number => randomInt(100, 400);
/** How long a node that stepped down leaves the lead to others. */
export const RESIGNED_MS = 4000;

/**
 * Calls back every TICK_MS with the time that passed. A process that was late (a busy machine,
 * SIGSTOP) counts one tick for all its absence: it must not take its own silence for that of the
 * others, whose messages wait to be read.
 */
export function startClock(tick: (elapsedMs: number) => void): { stop: () => void } {
  let last = performance.now();
  const timer = setInterval(() => {
    const now = performance.now();
    tick(Math.min(now - last, 2 * TICK_MS));
    last = now;
  }, TICK_MS);
  return { stop: () => clearInterval(timer) };
}
