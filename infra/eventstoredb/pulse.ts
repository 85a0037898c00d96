import { backoffMs } from '../../shared/lib/time/backoff.ts';
import { sleepUntilAborted } from '../../shared/lib/time/sleep.ts';
import type { HostClient } from './clientInternals.ts';
import { isAccessDenied, isUnauthenticated } from './serverErrors.ts';
import type { AskIfServing } from './serving.ts';
import { Silence } from './trouble.ts';

/** How often the node in use is asked whether it serves; less often while it refuses the user. */
const PULSE = { firstMs: 500, longestMs: 5_000 };
/**
 * A node from which nothing comes for so long is silent; one that is known to be slow has twice the
 * time that it took last.
 */
const SILENCE_MS = 1_000;
const LONGEST_SILENCE_MS = 8_000;
const ANSWER_LIMIT_MS = 10_000;

/** What is learnt from a node's answers, or from their absence. */
interface Findings {
  /** It answers, and can serve. */
  well(): void;
  /** Nothing comes from it any more. It may be slow, frozen or out of reach. */
  silent(): void;
  /** It answers again, but not what it was asked while silent: open calls stay unanswered. */
  revived(): void;
  /** It refuses the user. Another connection would be refused as well. */
  refused(error: unknown): void;
  /** It is gone, or can't serve. */
  lost(error: unknown): void;
}

interface Watched {
  client: HostClient;
  askIfServing: AskIfServing;
  /** Aborted when the node is given up. */
  signal: AbortSignal;
}

export interface Pulse {
  /** Asks now. */
  ask(): void;
  /** To be called with everything that comes from the node. */
  heard(): void;
  isSilent(): boolean;
  /** How long the node may take to answer, by how long it took lately, in milliseconds. */
  patienceMs(): number;
}

/** Asks a node, again and again, whether it can serve. */
export function startPulse({ client, askIfServing, signal }: Watched, findings: Findings): Pulse {
  let heardAt = performance.now();
  let patienceMs = SILENCE_MS;
  let refusals = 0;
  let silent = false;
  let asked = 0;
  /**
   * Questions without an answer, by number: at most as many as are asked within the limit of one.
   */
  const open = new Set<number>();

  const heard = (): void => {
    heardAt = performance.now();
  };

  function suspect(question: number): void {
    if (signal.aborted || !open.has(question) || performance.now() - heardAt < patienceMs) return;
    silent = true;
    findings.silent();
  }

  function answered(question: number, tookMs: number): void {
    heard();
    if (silent && [...open].some((earlier) => earlier < question)) return findings.revived();
    silent = false;
    refusals = 0;
    patienceMs = Math.min(LONGEST_SILENCE_MS, Math.max(SILENCE_MS, 2 * tookMs));
    findings.well();
  }

  async function ask(): Promise<void> {
    const question = (asked += 1);
    const began = performance.now();
    open.add(question);
    // What came while this process was busy is read before the time counts as over.
    const suspicion = setTimeout(() => setImmediate(suspect, question), patienceMs);
    try {
      await askIfServing(client, { limitMs: ANSWER_LIMIT_MS, signal, heard });
      open.delete(question);
      answered(question, performance.now() - began);
    } catch (error) {
      if (signal.aborted || error instanceof Silence) return;
      if (!isUnauthenticated(error) && !isAccessDenied(error)) return findings.lost(error);
      refusals += 1;
      findings.refused(error);
    } finally {
      open.delete(question);
      clearTimeout(suspicion);
    }
  }

  const pause = (milliseconds: number): Promise<void> =>
    sleepUntilAborted(milliseconds, { signal, ref: false });

  async function watch(): Promise<void> {
    while (!signal.aborted) {
      await pause(backoffMs(PULSE, refusals));
      // A question that is not answered in time is not waited for: the next one may be.
      if (!signal.aborted) await Promise.race([ask(), pause(patienceMs)]);
    }
  }

  void watch();
  return {
    ask: () => void (open.size === 0 && ask()),
    heard,
    isSilent: () => silent,
    patienceMs: () => patienceMs,
  };
}
