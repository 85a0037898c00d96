import type { Context } from 'koa';
import type { Actor } from '../../../shared/commandHandling/context.ts';
import type { FeedItem, FeedPage } from '../../../shared/feed/accountFeed.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { cloudEventOf } from '../../../shared/publicEvents/cloudEvent.ts';
import type { RouteContext } from '../context.ts';
import type { SseEvent } from '../http/responses/sse.ts';
import { createKeyCheck } from '../http/access/keyRevocation.ts';

/** An event of the feed as clients get it, in one line. */
export const formatFeedItem = ({ event, cursor }: FeedItem, source: string): string =>
  JSON.stringify({ ...cloudEventOf(event, source), cursor });

/** Tells only how far the log was looked through: a client that comes again begins there. */
const positionEvent = (cursor: string): SseEvent => ({
  id: cursor,
  event: 'position',
  data: JSON.stringify({ cursor }),
});

/**
 * The pages of a feed as a stream: each event with its cursor as id, now and then the position where
 * none comes. It ends when the key is no longer valid; a failure is its last event.
 */
export async function* streamEvents(
  api: RouteContext,
  actor: Actor,
  pages: AsyncIterable<FeedPage>,
  ctx: Context,
): AsyncGenerator<SseEvent, void> {
  const isAllowed = createKeyCheck(api, actor);
  let toldAt = -Infinity;
  try {
    for await (const { items, cursor } of pages) {
      if (!(await isAllowed())) return;
      for (const item of items) {
        const { type } = item.event;
        yield { id: item.cursor, event: type, data: formatFeedItem(item, api.eventSource) };
      }
      const now = performance.now();
      const isLate = now - toldAt >= LIMITS.feed.progressMs;
      if (items.length === 0 && cursor !== undefined && isLate) yield positionEvent(cursor);
      else if (items.length === 0) continue;
      toldAt = now;
    }
  } catch (error) {
    api.logger.debug({ err: error, account_id: actor.account_id }, 'a stream of events has ended');
    const failure = api.errors.present(
      api.errors.toPublicError(error),
      ctx.state['request_id'] as string,
    );
    yield { event: 'error', data: JSON.stringify(failure) };
  }
}
