import { Rejection } from '../domain/rejection.ts';
import { isLogUnavailable, isTurnlogError } from '../lib/errors/turnlogError.ts';
import { endsWithErasure } from '../eventlog/reading/erasureLookup.ts';
import { streamKind } from '../eventlog/streams.ts';
import { backoffMs } from '../lib/time/backoff.ts';
import { errorSummary, publicReason } from '../lib/errors/errorSummary.ts';
import { LIMITS } from '../limits.ts';
import type { OpenErasure } from '../ports/keyStore.ts';
import { eraseAccount, type AccountContext } from './eraseAccount.ts';
import { eraseWithReplays, type ReplaysContext } from './eraseWithReplays.ts';
import { parseErasureReason } from './eraseStream.ts';

type FinishContext = AccountContext & ReplaysContext;

/** True when no later attempt can succeed. One of a recorded erasure can, after a hold for example. */
const isPermanent = async (
  { store }: FinishContext,
  { stream }: OpenErasure,
  error: unknown,
): Promise<boolean> =>
  error instanceof Rejection ||
  isTurnlogError(error, 'stream_damaged') ||
  (isTurnlogError(error, 'erasure_refused') && !(await endsWithErasure(store, stream)));

/** How long only the process that started an erasure works on it. */
const GRACE_MS = 30_000;
const BACKOFF = { firstMs: 2_000, longestMs: 600_000 };

/** The attempts to finish an erasure. */
interface Attempts {
  /** When the next attempt is due, by the monotonic clock. */
  dueAt: number;
  failures: number;
  /** Why the last attempt failed. */
  reason?: string;
}

/** Why erasures are still unfinished. */
interface UnfinishedErasures {
  count: number;
  reason: string;
}

async function finish(
  context: FinishContext,
  { stream, why }: OpenErasure,
  signal: AbortSignal,
): Promise<void> {
  const { grounds, actor } = parseErasureReason(why);
  if (streamKind(stream) === 'account' && actor) {
    const { unrecorded, unowned } = await eraseAccount(context, actor, { ...grounds, signal });
    if (unrecorded.length + unowned.length > 0)
      context.logger.warn(
        { stream, unrecorded: unrecorded.slice(0, 10), unowned: unowned.slice(0, 10) },
        'the account was erased except for streams that are damaged or whose owner is unknown',
      );
  } else {
    const erased = await eraseWithReplays(context, stream, grounds, actor);
    context.onErased?.(erased);
  }
  context.logger.warn({ stream }, 'finished an erasure that another process had begun');
}

/**
 * Finishes erasures that have been open for a while, because a store was unavailable or a process
 * died. Any number of processes may call the result repeatedly. `now` returns milliseconds of a
 * monotonic clock.
 */
export function createErasureFinisher(
  context: FinishContext,
  now = (): number => performance.now(),
) {
  const { keys } = context.store;
  let attempts = new Map<string, Attempts>();

  /** Logs each reason once, and backs off. */
  function recordFailure({ stream }: OpenErasure, attempt: Attempts, error: unknown): void {
    const reason = publicReason(error);
    if (attempt.reason !== reason && !isLogUnavailable(error))
      context.logger.warn(
        { ...errorSummary(error), stream },
        'an erasure could not be finished yet',
      );
    attempt.dueAt = now() + backoffMs(BACKOFF, attempt.failures);
    attempt.failures += 1;
    attempt.reason = reason;
  }

  /** Resolves with false when a store is unavailable that the other erasures need as well. */
  async function tryFinish(
    open: OpenErasure,
    attempt: Attempts,
    signal: AbortSignal,
  ): Promise<boolean> {
    try {
      await finish(context, open, signal);
    } catch (error) {
      if (signal.aborted) return false;
      if (!(await isPermanent(context, open, error))) {
        recordFailure(open, attempt, error);
        return !isLogUnavailable(error);
      }
      context.logger.warn({ err: error, stream: open.stream }, 'an erasure could not be finished');
      // More attempts would not help. Everything readable is erased, and the keys that were found
      // are destroyed.
      await keys.endErasure(open.stream, []);
    }
    attempts.delete(open.stream);
    return true;
  }

  const listOpen = (): Promise<OpenErasure[]> => keys.listErasures(LIMITS.erasure.openErasures);
  return {
    /** Makes the erasures that are open now due at once: no process works on them any more. */
    async takeOver(): Promise<void> {
      for (const { stream } of await listOpen()) {
        const attempt = attempts.get(stream);
        if (!attempt) attempts.set(stream, { dueAt: now(), failures: 0 });
        else if (attempt.failures === 0) attempt.dueAt = now();
      }
    },

    /**
     * Attempts each erasure that is due. Logs those that can't be finished and continues with the
     * others.
     */
    async finish(signal: AbortSignal): Promise<void> {
      const open = await listOpen();
      const dueAt = now() + GRACE_MS;
      attempts = new Map(
        open.map(({ stream }) => [stream, attempts.get(stream) ?? { dueAt, failures: 0 }]),
      );
      for (const erasure of open) {
        if (signal.aborted) return;
        const attempt = attempts.get(erasure.stream)!;
        if (now() >= attempt.dueAt && !(await tryFinish(erasure, attempt, signal))) return;
      }
    },

    /** Undefined while no attempt has failed. */
    unfinished(): UnfinishedErasures | undefined {
      const failing = [...attempts].filter(([, { reason }]) => reason !== undefined);
      const [stream, attempt] = failing[0] ?? [];
      return stream === undefined
        ? undefined
        : { count: failing.length, reason: `${stream}: ${attempt!.reason}` };
    },
  };
}
