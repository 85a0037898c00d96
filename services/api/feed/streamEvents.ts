import type { Context } from 'koa';
import type { Actor } from '../../../shared/commandHandling/context.ts';
import type { FeedItem, FeedPage } from '../../../shared/feed/accountFeed.ts';
import { accountStream } from '../../../shared/eventlog/streams.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { cloudEventOf } from '../../../shared/publicEvents/cloudEvent.ts';
import type { RouteContext } from '../context.ts';
import type { SseEvent } from '../http/responses/sse.ts';
import type { KeyCheck } from '../http/access/keyRevocation.ts';

/** An event of the feed as one line of JSON. */
export const formatFeedItem = ({ event, cursor }: FeedItem, source: string): string =>
  JSON.stringify({ ...cloudEventOf(event, source), cursor });

/** A later cursor without an event, from which a client that reconnects continues. */
const positionEvent = (cursor: string): SseEvent => ({
  id: cursor,
  event: 'position',
  data: JSON.stringify({ cursor }),
});

interface FeedReader {
  actor: Actor;
  isAllowed: KeyCheck;
  /** The name of the server-sent events: their type by default. */
  name: 'type' | 'message' | undefined;
}

/**
 * Streams the pages of a feed: each event with its cursor as id, and at intervals a position where no
 * event comes. It ends when the key is no longer valid; an error is its last event.
 */
export async function* streamEvents(
  api: RouteContext,
  { actor, isAllowed, name }: FeedReader,
  pages: AsyncIterable<FeedPage>,
  ctx: Context,
): AsyncGenerator<SseEvent, void> {
  const subject = accountStream(actor.account_id);
  let sentAt = -Infinity;
  try {
    for await (const { items, cursor } of pages) {
      if (!(await isAllowed())) return;
      if (items.length > 0) await api.readAudit.record(api, actor, 'feed', subject);
      for (const item of items) {
        const { type } = item.event;
        const event = name === 'message' ? name : type;
        yield { id: item.cursor, event, data: formatFeedItem(item, api.eventSource) };
      }
      const now = performance.now();
      const isDue = now - sentAt >= LIMITS.feed.progressMs;
      if (items.length === 0 && cursor !== undefined && isDue) yield positionEvent(cursor);
      else if (items.length === 0) continue;
      sentAt = now;
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
