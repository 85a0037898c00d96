import { Rejection } from '../../domain/rejection.ts';
import { isTurnlogError } from '../../errors.ts';
import { streamId, streamKind } from '../../eventlog/streams.ts';
import type { Logger } from '../../logger.ts';
import { eraseAccount, type AccountContext } from './eraseAccount.ts';
import { eraseStream } from './eraseStream.ts';

export interface FinishContext extends AccountContext {
  logger: Pick<Logger, 'warn'>;
}

/** The note of what it was about is gone then. */
const isOver = (error: unknown): boolean =>
  error instanceof Rejection ||
  isTurnlogError(error, 'stream_damaged') ||
  isTurnlogError(error, 'erasure_refused');

/** Looked at in one call. */
const MOST = 100;
/** Whoever has begun an erasure is left alone with it for so long. */
const LEFT_ALONE_MS = 30_000;

async function finish(context: FinishContext, stream: string, signal: AbortSignal): Promise<void> {
  if (streamKind(stream) === 'account') {
    const actor = { account_id: streamId(stream), key_id: 'system', request_id: 'recovery' };
    await eraseAccount(context, actor, { signal });
  } else {
    const erased = await eraseStream(context, stream, { reason: 'request' });
    context.onErased?.(erased);
  }
  context.logger.warn({ stream }, 'an erasure that was not finished is finished now');
}

/**
 * Goes on with erasures that were begun, and that nobody has ended for a while: a store was away, or
 * a process died. To be called now and then, by any number of processes. `now` in milliseconds of a
 * monotonic clock.
 */
export function createFinisher(context: FinishContext, now = (): number => performance.now()) {
  let seenSince = new Map<string, number>();

  return {
    /**
     * Errors: `store_unavailable`; a stream whose log can't take its erasure is logged, and its keys
     * are destroyed.
     */
    async finish(signal: AbortSignal, leftAloneMs = LEFT_ALONE_MS): Promise<void> {
      const begun = await context.store.keys.listErasures(MOST);
      seenSince = new Map(begun.map((stream) => [stream, seenSince.get(stream) ?? now()]));
      for (const [stream, since] of seenSince) {
        if (signal.aborted) return;
        if (now() - since < leftAloneMs) continue;
        try {
          await finish(context, stream, signal);
        } catch (error) {
          if (signal.aborted) return;
          if (isOver(error))
            context.logger.warn({ err: error, stream }, 'an erasure could not be finished');
          else throw error;
        }
      }
    },
  };
}
