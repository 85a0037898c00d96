import type { JudgedTime } from '../../../shared/erasure/retention/judgeClock.ts';
import type { SweepResult } from '../../../shared/erasure/retention/sweepSessions.ts';
import { errorSummary, publicReason } from '../../../shared/lib/errors/errorSummary.ts';
import type { Logger } from '../../../shared/lib/logger.ts';
import { sleepUntilAborted } from '../../../shared/lib/time/sleep.ts';
import type { RetentionHealth } from '../../../shared/health/health.ts';
import type { ProcessPart } from '../processParts.ts';

/** Days are kept, so an hour more or less is nothing. */
const SWEEP_MS = 3_600_000;
/** A start has other things to do. */
const FIRST_MS = 60_000;

export interface RetentionOptions {
  /** False while no account has a maximum: there is nothing to do or to tell then. Errors: `store_unavailable`. */
  isNeeded: () => Promise<boolean>;
  /** Judges the clock. Errors: those of the clocks. */
  judge: () => Promise<JudgedTime>;
  /** One sweep at that time. Errors: those of sweepSessions. */
  sweep: (now: number, signal: AbortSignal) => Promise<SweepResult>;
  /**
   * Does the work where no other process does it; false where one does. The signal aborts when that
   * can't be said any more. Errors: those of the work, `store_unavailable`.
   */
  runExclusively: (work: (signal: AbortSignal) => Promise<void>) => Promise<boolean>;
  logger: Pick<Logger, 'warn' | 'debug'>;
  /** How long to wait for the first sweep, and for each after that; in milliseconds. */
  pauses?: { firstMs: number; nextMs: number };
}

/** Erases, each hour, the sessions that are past the maximum of their account's retention. */
export function retentionPart({
  isNeeded: needed,
  judge,
  sweep,
  runExclusively: alone,
  logger,
  pauses = { firstMs: FIRST_MS, nextMs: SWEEP_MS },
}: RetentionOptions): ProcessPart {
  let known: RetentionHealth = { state: 'waiting', due: null, held: null, failed: null, erased: 0 };
  let inUse = false;
  const become = (change: Pick<RetentionHealth, 'state'> & Partial<RetentionHealth>): void =>
    void (known = { ...known, reason: undefined, ...change });

  async function sweepOnce(signal: AbortSignal): Promise<void> {
    const judged = await judge();
    inUse = await needed();
    if (!inUse) return;
    if (judged.problem !== undefined) {
      if (known.reason !== judged.problem)
        logger.warn(
          { reason: judged.problem },
          'nothing is erased by retention: the clock may be wrong',
        );
      return become({ state: 'refusing', reason: judged.problem });
    }
    const done = await alone(async (held) => {
      become({ state: 'sweeping' });
      const { erased, ...left } = await sweep(judged.now, AbortSignal.any([signal, held]));
      become({ state: 'waiting', ...left, erased: known.erased + erased });
    });
    if (!done) become({ state: 'standing_by', due: null, held: null, failed: null });
  }

  async function sweepOnAndOn(signal: AbortSignal): Promise<void> {
    await sleepUntilAborted(pauses.firstMs, { signal, ref: false });
    while (!signal.aborted) {
      await sweepOnce(signal).catch((error: unknown) => {
        if (signal.aborted) return;
        logger.warn(errorSummary(error), 'a sweep for sessions past their retention has failed');
        become({ state: 'failing', reason: publicReason(error) });
      });
      await sleepUntilAborted(pauses.nextMs, { signal, ref: false });
    }
  }

  return {
    health: async () => (inUse ? { retention: known } : {}),
    // Before anybody writes an event by a clock that may be wrong.
    async prepare() {
      await judge().catch(() => undefined);
    },
    upkeep() {
      const stopping = new AbortController();
      const swept = sweepOnAndOn(stopping.signal);
      return {
        async [Symbol.asyncDispose]() {
          stopping.abort();
          await swept;
        },
      };
    },
  };
}
