import { Rejection } from '../domain/rejection.ts';
import { isLogUnavailable, isTurnlogError } from '../lib/errors/turnlogError.ts';
import { streamKind } from '../eventlog/streams.ts';
import { backoffMs } from '../lib/time/backoff.ts';
import { errorSummary, publicReason } from '../lib/errors/errorSummary.ts';
import { LIMITS } from '../limits.ts';
import type { Logger } from '../lib/logger.ts';
import type { OpenErasure } from '../ports/keyStore.ts';
import { eraseAccount, type AccountContext } from './eraseAccount.ts';
import { eraseWithReplays, type ReplaysContext } from './eraseWithReplays.ts';
import { parseErasureReason } from './erasureReason.ts';

export interface FinishContext extends AccountContext, Pick<ReplaysContext, 'replaysAt'> {
  logger: Pick<Logger, 'warn'>;
}

/** What it asks for can't be, now and later. */
const isOver = (error: unknown): boolean =>
  error instanceof Rejection ||
  isTurnlogError(error, 'stream_damaged') ||
  isTurnlogError(error, 'erasure_refused');

/** Whoever has begun an erasure is left alone with it for so long. */
const LEFT_ALONE_MS = 30_000;
const PAUSES = { firstMs: 2_000, longestMs: 600_000 };

/** An erasure that somebody has left. */
interface Left {
  /** When it is gone on with, by the monotonic clock. */
  dueAt: number;
  failures: number;
  /** Why it failed the last time. */
  reason?: string;
}

/** What is wrong with erasures that were begun. */
export interface UnfinishedErasures {
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
        'of an account that was erased, streams were left that are damaged, or that nobody can tell whose they are',
      );
  } else {
    const erased = await eraseWithReplays(context, stream, grounds, actor);
    context.onErased?.(erased);
  }
  context.logger.warn({ stream }, 'an erasure that was not finished is finished now');
}

/**
 * Goes on with erasures that were begun, and that nobody has ended for a while: a store was away, or
 * a process died. To be called now and then, by any number of processes. `now` in milliseconds of a
 * monotonic clock.
 */
export function createErasureFinisher(
  context: FinishContext,
  now = (): number => performance.now(),
) {
  const { keys } = context.store;
  let known = new Map<string, Left>();

  /** Said once for each reason, and tried again less and less often. */
  function failed({ stream }: OpenErasure, left: Left, error: unknown): void {
    const reason = publicReason(error);
    if (left.reason !== reason && !isLogUnavailable(error))
      context.logger.warn(
        { ...errorSummary(error), stream },
        'an erasure could not be finished yet',
      );
    left.dueAt = now() + backoffMs(PAUSES, left.failures);
    left.failures += 1;
    left.reason = reason;
  }

  /** False where a store is away, from the others as well. */
  async function goOn(open: OpenErasure, left: Left, signal: AbortSignal): Promise<boolean> {
    try {
      await finish(context, open, signal);
    } catch (error) {
      if (signal.aborted) return false;
      if (!isOver(error)) {
        failed(open, left, error);
        return !isLogUnavailable(error);
      }
      context.logger.warn({ err: error, stream: open.stream }, 'an erasure could not be finished');
      // Nobody is to try for ever; what its log says and the keys that were found have been seen to.
      await keys.endErasure(open.stream, []);
    }
    known.delete(open.stream);
    return true;
  }

  return {
    /** What can't be finished is logged, and keeps no other from it. */
    async finish(signal: AbortSignal, leftAloneMs = LEFT_ALONE_MS): Promise<void> {
      const begun = await keys.listErasures(LIMITS.erasure.openErasures);
      const dueAt = now() + leftAloneMs;
      known = new Map(
        begun.map(({ stream }) => [stream, known.get(stream) ?? { dueAt, failures: 0 }]),
      );
      for (const open of begun) {
        if (signal.aborted) return;
        const left = known.get(open.stream)!;
        if (now() >= left.dueAt && !(await goOn(open, left, signal))) return;
      }
    },

    /** Undefined while all is well. */
    unfinished(): UnfinishedErasures | undefined {
      const failing = [...known].filter(([, { reason }]) => reason !== undefined);
      const [stream, left] = failing[0] ?? [];
      return stream === undefined
        ? undefined
        : { count: failing.length, reason: `${stream}: ${left!.reason}` };
    },
  };
}
