import type { Context } from 'koa';
import type { Logger } from '../../../../shared/lib/logger.ts';

/**
 * Cuts the connection when an error occurs after the headers were sent, so that clients don't take
 * the truncated response for a complete one. A client that disconnected is not an error.
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
    logger.warn({ err: error, request_id }, 'a response broke off while it was sent');
    ctx.res.destroy();
  }
}
