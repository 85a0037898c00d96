import { KEEP_MS, type JudgedTime } from '../../../shared/erasure/retention/judgeClock.ts';
import type { SweepResult } from '../../../shared/erasure/retention/sweepSessions.ts';
import { errorSummary, publicReason } from '../../../shared/lib/errors/errorSummary.ts';
import type { Logger } from '../../../shared/lib/logger.ts';
import { sleepUntilAborted } from '../../../shared/lib/time/sleep.ts';
import type { RetentionHealth } from '../../../shared/health/health.ts';
import type { ProcessPart } from '../processParts.ts';

/** Retention is set in days, so an hourly sweep is precise enough. */
const SWEEP_MS = 3_600_000;
/** On an orderly stop, less time than this need not be recorded. */
const STOP_MS = 60_000;
/** Leaves the start time for more urgent work. */
const FIRST_MS = 60_000;

export interface RetentionOptions {
  /** False while no account has a maximum: then there is nothing to sweep or to report. */
  isNeeded: () => Promise<boolean>;
  /** Judges the clock. */
  judge: () => Promise<JudgedTime>;
  /**
   * Records the proven time if at least this much has passed since it was last recorded, in
   * milliseconds, and an account has a minimum or maximum.
   */
  keepTime?: (leastMs: number) => Promise<void>;
  /** Runs one sweep at that time. */
  sweep: (now: number, signal: AbortSignal) => Promise<SweepResult>;
  /**
   * Does the work unless another process does it; then resolves with false. The signal aborts when
   * exclusiveness is lost.
   */
  runExclusively: (work: (signal: AbortSignal) => Promise<void>) => Promise<boolean>;
  logger: Pick<Logger, 'warn' | 'debug'>;
  /** The pauses before the first sweep and before each later one, in milliseconds. */
  pauses?: { firstMs: number; nextMs: number };
}

const isBelieved = ({ problem, late }: JudgedTime): boolean =>
  problem === undefined && late === undefined;

/** Erases, each hour, the sessions that exceed the maximum retention of their account. */
export function retentionPart({
  isNeeded: needed,
  judge,
  keepTime = async () => undefined,
  sweep,
  runExclusively,
  logger,
  pauses = { firstMs: FIRST_MS, nextMs: SWEEP_MS },
}: RetentionOptions): ProcessPart {
  let status: RetentionHealth = {
    state: 'waiting',
    due: null,
    held: null,
    failed: null,
    erased: 0,
  };
  let isInUse = false;
  /** Resolves with true once an operator has confirmed what the last sweep waits for. */
  let isConfirmed: (() => Promise<boolean>) | undefined;
  const update = (change: Pick<RetentionHealth, 'state'> & Partial<RetentionHealth>): void =>
    void (status = { ...status, reason: undefined, ...change });

  async function sweepOnce(signal: AbortSignal): Promise<void> {
    isInUse = await needed();
    const judged = await judge();
    // A clock that says no time can't record the proven one either.
    await keepTime(KEEP_MS).catch((error: unknown) =>
      logger.warn(errorSummary(error), 'the proven time could not be recorded'),
    );
    isConfirmed = isBelieved(judged) ? undefined : async () => isBelieved(await judge());
    if (!isInUse) return;
    if (judged.problem !== undefined) {
      if (status.reason !== judged.problem)
        logger.warn({ reason: judged.problem }, 'retention erases nothing: the clock may be wrong');
      return update({ state: 'refusing', reason: judged.problem });
    }
    const wasRun = await runExclusively(async (held) => {
      update({ state: 'sweeping' });
      const swept = await sweep(judged.now, AbortSignal.any([signal, held]));
      const { erased, isConfirmed: confirmed, reason, ...counts } = swept;
      isConfirmed = confirmed ?? isConfirmed;
      const reasons = [reason, judged.late].filter((text) => text !== undefined);
      update({
        state: 'waiting',
        ...counts,
        erased: status.erased + erased,
        ...(reasons.length > 0 && { reason: reasons.join(' ') }),
      });
    });
    if (!wasRun) update({ state: 'standing_by', due: null, held: null, failed: null });
  }

  /** Waits for the next sweep, which is due earlier when an operator has confirmed something. */
  async function pause(signal: AbortSignal): Promise<void> {
    const { firstMs, nextMs } = pauses;
    for (const until = performance.now() + nextMs; !signal.aborted;) {
      const remainingMs = until - performance.now();
      if (remainingMs <= 0) return;
      await sleepUntilAborted(Math.min(firstMs, remainingMs), { signal, ref: false });
      if (!signal.aborted && (await isConfirmed?.().catch(() => false))) return;
    }
  }

  async function sweepUntilAborted(signal: AbortSignal): Promise<void> {
    await sleepUntilAborted(pauses.firstMs, { signal, ref: false });
    while (!signal.aborted) {
      await sweepOnce(signal).catch((error: unknown) => {
        if (signal.aborted) return;
        logger.warn(errorSummary(error), 'the retention sweep failed');
        update({ state: 'failing', reason: publicReason(error) });
      });
      await pause(signal);
    }
  }

  return {
    health: async () => (isInUse ? { retention: status } : {}),
    // Judge before any event is recorded with a clock that may be wrong.
    async prepare() {
      await judge().catch(() => undefined);
      await keepTime(0).catch(() => undefined);
    },
    upkeep() {
      const stopping = new AbortController();
      const sweeping = sweepUntilAborted(stopping.signal);
      return {
        async [Symbol.asyncDispose]() {
          stopping.abort();
          await sweeping;
          await keepTime(STOP_MS).catch(() => undefined);
        },
      };
    },
  };
}
