import type { Outcome } from '../node.ts';
import type { Operation } from '../types.ts';
import { max, type Epoch, type Message } from './protocol.ts';
import type { Replica } from './replica.ts';
import { COMMIT_TIMEOUT_MS, RESEND_MS } from './timing.ts';

interface Follower {
  /** Where the next batch for it begins. */
  next: bigint;
  /** Up to where its log is known to be this one. */
  matched: bigint;
  /** What it was last told to be committed. */
  told: bigint;
  /** When the batch was sent that it has not confirmed; there is one at a time. */
  sentAt: number | undefined;
}

interface Pending {
  outcome: Outcome & { kind: 'success' };
  since: number;
  /**
   * A copy of a write that is not committed yet: a server drops it, and tells the client of a
   * time-out.
   */
  copy: boolean;
  done: (outcome: Outcome) => void;
}

interface Options {
  replica: Replica;
  term: number;
  /** The other members. */
  peers: readonly number[];
  isAlive: (peer: number) => boolean;
  send: (peer: number, message: Message) => void;
  /** Called once: what this leader began with is committed, and all that was before it. */
  established: () => void;
}

export type Leading = ReturnType<typeof lead>;

/**
 * The leader's work in one term: gets its log to the followers, and answers writes when a majority
 * has them.
 */
export function lead({ replica, term, peers, isAlive, send, established }: Options) {
  const before = replica.end();
  const own = replica.writeEpoch(term);
  const followers = new Map<number, Follower>();
  for (const peer of peers)
    followers.set(peer, { next: before, matched: 0n, told: 0n, sentAt: undefined });
  let pending: Pending[] = [];
  let isEstablished = false;

  function take(isDue: (write: Pending) => boolean): Pending[] {
    const due = pending.filter(isDue);
    pending = pending.filter((write) => !isDue(write));
    return due;
  }

  function pump(peer: number, follower: Follower): void {
    const { next: from, sentAt } = follower;
    if (!isAlive(peer) || (sentAt !== undefined && performance.now() - sentAt < RESEND_MS)) return;
    const rows = replica.batch(from);
    const committed = replica.committed();
    if (rows.length === 0 && follower.told === committed && sentAt === undefined) return;
    follower.sentAt = performance.now();
    follower.told = committed;
    send(peer, { kind: 'replicate', term, from, epoch: replica.epochAt(from), rows, committed });
  }

  const pumpAll = (): void => followers.forEach((follower, peer) => pump(peer, follower));

  /**
   * What a majority has is committed, once something of this term is among it: only that can no
   * longer be overruled.
   */
  function advance(): void {
    const ends = [replica.end(), ...Array.from(followers.values(), ({ matched }) => matched)];
    const [majority = 0n] = ends
      .toSorted((a, b) => (a < b ? 1 : -1))
      .slice(Math.floor(ends.length / 2));
    if (majority < own || majority <= replica.committed()) return;
    replica.commit(majority);
    pumpAll();
    const settled = take(({ copy, outcome }) => !copy && outcome.position < majority);
    for (const { done, outcome } of settled) done(outcome);
    if (!isEstablished) established();
    isEstablished = true;
  }

  pumpAll();
  return {
    write(operation: Operation, done: (outcome: Outcome) => void): void {
      const outcome = replica.perform(operation);
      // A refusal is told at once, on the ground of writes that may never be committed: so does a
      // server.
      if (outcome.kind !== 'success' || outcome.position < replica.committed())
        return done(outcome);
      pending.push({ outcome, done, since: performance.now(), copy: outcome.again ?? false });
      pumpAll();
    },
    replicated(peer: number, end: bigint): void {
      const follower = followers.get(peer);
      if (!follower) return;
      follower.sentAt = undefined;
      follower.next = max(follower.next, end);
      follower.matched = max(follower.matched, end);
      advance();
      pump(peer, follower);
    },
    mismatch(peer: number, epochs: readonly Epoch[], end: bigint): void {
      const follower = followers.get(peer);
      if (!follower) return;
      follower.sentAt = undefined;
      follower.next = replica.commonEnd(epochs, end);
      pump(peer, follower);
    },
    tick(): void {
      pumpAll();
      const now = performance.now();
      for (const { done } of take(({ since }) => now - since > COMMIT_TIMEOUT_MS))
        done({ kind: 'timeout' });
    },
    /**
     * Tells those who still wait that it takes too long. A leader that is deposed leaves them
     * without an answer.
     */
    giveUp(): void {
      for (const { done } of take(() => true)) done({ kind: 'timeout' });
    },
  };
}
