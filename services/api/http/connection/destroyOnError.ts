import type { Context } from 'koa';
import type { Logger } from '../../../../shared/lib/logger.ts';

/**
 * A failure now can't be told any more: the connection is cut, so that nobody takes it for an end. A
 * client that has left is no failure, though what was read for it ends like one.
 */
export async function* destroyOnError(
  first: Buffer[],
  pieces: AsyncGenerator<Buffer, void>,
  logger: Logger,
  ctx: Context,
): AsyncGenerator<Buffer, void> {
  try {
    while (first.length > 0) yield first.shift()!;
    yield* pieces;
  } catch (error) {
    if (ctx.res.closed) return;
    const { request_id } = ctx.state;
    logger.warn({ err: error, request_id }, 'an answer broke off while it was sent');
    ctx.res.destroy();
  }
}
