import { backoffMs } from '../../../shared/lib/time/backoff.ts';
import { sleepUntilAborted } from '../../../shared/lib/time/sleep.ts';
import { DeadlineExceeded, withDeadline } from '../../../shared/lib/time/withDeadline.ts';
import { readEndOfLog } from '../read/readAll.ts';
import { chooseNode, parseMembers } from './discoveryState.ts';
import type { HostClient } from './hostClient.ts';
import { isAccessDenied, isUnauthenticated, NotReadyError } from './serverErrors.ts';

interface ReadinessOptions {
  limitMs: number;
  signal: AbortSignal;
  onActivity?: () => void;
}

/** Resolves when the node can serve. Rejects with the reason when it can't. */
export type CheckReadiness = (client: HostClient, options: ReadinessOptions) => Promise<void>;

/**
 * Checks readiness by reading the end of the log. When the leader must answer, this takes a leader
 * with a quorum and a user who may read `$all`. An isolated follower answers the read as well, so a
 * follower must also know of a leader.
 */
export const createReadinessCheck =
  (requiresLeader: boolean): CheckReadiness =>
  (client, { limitMs, signal: callerSignal, onActivity }) =>
    withDeadline(limitMs, callerSignal, async (signal) => {
      await readEndOfLog(client, { requiresLeader, signal, ...(onActivity && { onActivity }) });
      if (requiresLeader) return;
      const members = parseMembers(await client.readGossip(signal));
      if (members.length > 1 && chooseNode(members, 'leader') === undefined)
        throw new NotReadyError('the node knows of no leader');
    });

/** The interval of checks; grows while the node refuses the user. */
const CHECK_INTERVAL = { firstMs: 500, longestMs: 5_000 };
/**
 * A node that sends nothing for this time, in milliseconds, is silent. A slow node gets twice the
 * duration of its last answer, up to the longest limit.
 */
const SILENCE_MS = 1_000;
const LONGEST_SILENCE_MS = 8_000;
const ANSWER_LIMIT_MS = 10_000;

interface HeartbeatListener {
  /** The node answers and can serve. */
  onReady(): void;
  /** The node sends nothing. It may be slow, frozen or unreachable. */
  onSilent(): void;
  /** The node answers again, but not the checks from before: its open calls stay unanswered. */
  onRevived(): void;
  /** The node refuses the user. Another connection would be refused as well. */
  onRefused(error: unknown): void;
  /** The node is down or can't serve. */
  onLost(error: unknown): void;
}

interface HeartbeatOptions {
  client: HostClient;
  checkReadiness: CheckReadiness;
  /** Ends the heartbeat. */
  signal: AbortSignal;
}

export interface Heartbeat {
  /** Checks now, unless a check is in progress. */
  checkNow(): void;
  /** Call this for everything that the node sends. */
  recordActivity(): void;
  isSilent(): boolean;
  /** How long the node may stay silent, in milliseconds, based on its last answer. */
  silenceLimitMs(): number;
}

/** Starts checking a node periodically for readiness. */
export function startHeartbeat(
  { client, checkReadiness, signal }: HeartbeatOptions,
  listener: HeartbeatListener,
): Heartbeat {
  let lastActivityAt = performance.now();
  let silenceLimitMs = SILENCE_MS;
  let refusals = 0;
  let isSilent = false;
  let checkCount = 0;
  /** The numbers of the checks in progress. ANSWER_LIMIT_MS bounds how many there are. */
  const pendingChecks = new Set<number>();

  const recordActivity = (): void => {
    lastActivityAt = performance.now();
  };

  function reportSilence(check: number): void {
    const silentMs = performance.now() - lastActivityAt;
    if (signal.aborted || !pendingChecks.has(check) || silentMs < silenceLimitMs) return;
    isSilent = true;
    listener.onSilent();
  }

  function handleAnswer(check: number, tookMs: number): void {
    recordActivity();
    if (isSilent && [...pendingChecks].some((earlier) => earlier < check))
      return listener.onRevived();
    isSilent = false;
    refusals = 0;
    silenceLimitMs = Math.min(LONGEST_SILENCE_MS, Math.max(SILENCE_MS, 2 * tookMs));
    listener.onReady();
  }

  async function checkNode(): Promise<void> {
    const check = (checkCount += 1);
    const startedAt = performance.now();
    pendingChecks.add(check);
    // setImmediate lets Node.js read data that arrived while the process was busy.
    const silenceTimer = setTimeout(() => setImmediate(reportSilence, check), silenceLimitMs);
    try {
      await checkReadiness(client, {
        limitMs: ANSWER_LIMIT_MS,
        signal,
        onActivity: recordActivity,
      });
      pendingChecks.delete(check);
      handleAnswer(check, performance.now() - startedAt);
    } catch (error) {
      if (signal.aborted || error instanceof DeadlineExceeded) return;
      if (!isUnauthenticated(error) && !isAccessDenied(error)) return listener.onLost(error);
      refusals += 1;
      listener.onRefused(error);
    } finally {
      pendingChecks.delete(check);
      clearTimeout(silenceTimer);
    }
  }

  const sleep = (milliseconds: number): Promise<void> =>
    sleepUntilAborted(milliseconds, { signal, ref: false });

  async function run(): Promise<void> {
    while (!signal.aborted) {
      await sleep(backoffMs(CHECK_INTERVAL, refusals));
      // A late check continues beside the next one, which may be answered sooner.
      if (!signal.aborted) await Promise.race([checkNode(), sleep(silenceLimitMs)]);
    }
  }

  void run();
  return {
    checkNow: () => void (pendingChecks.size === 0 && checkNode()),
    recordActivity,
    isSilent: () => isSilent,
    silenceLimitMs: () => silenceLimitMs,
  };
}
