import type { ServerResponse } from 'node:http';
import type { Context } from 'koa';
import type { Actor } from '../../../shared/commandHandling/context.ts';
import type { FeedItem, FeedPage, FeedStart } from '../../../shared/feed/accountFeed.ts';
import { accountStream } from '../../../shared/eventlog/streams.ts';
import { resolvesWithin } from '../../../shared/lib/time/resolvesWithin.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { toCloudEvent } from '../../../shared/publicEvents/cloudEvent.ts';
import type { RouteContext } from '../context.ts';
import { onResponseClosed } from '../http/connection/clientDisconnect.ts';
import type { SseEvent } from '../http/responses/sse.ts';
import type { KeyCheck } from '../http/access/keyRevocation.ts';

/** How long a stream delays its status, so that an error of its first events can be the response. */
const FIRST_EVENTS_WAIT_MS = 1_000;

/** Waits for the first pages, so that their errors become the response. */
export async function awaitFirstPages(
  pages: AsyncGenerator<FeedPage, void>,
): Promise<AsyncGenerator<FeedPage, void>> {
  const first = await pages.next();
  const second = pages.next();
  await resolvesWithin(second, FIRST_EVENTS_WAIT_MS);
  return (async function* () {
    try {
      if (!first.done) yield first.value;
      const next = await second;
      if (!next.done) yield next.value;
      yield* pages;
    } finally {
      // Not awaited: an idle feed has no next page.
      void pages.return().catch(() => undefined);
    }
  })();
}

/** An event of the feed as one line of JSON. */
export const formatFeedItem = ({ event, cursor }: FeedItem, source: string): string =>
  JSON.stringify({ ...toCloudEvent(event, source), cursor });

/** A later cursor without an event, from which a client that reconnects continues. */
const positionEvent = (cursor: string): SseEvent => ({
  id: cursor,
  event: 'position',
  data: JSON.stringify({ cursor }),
});

interface FeedReader {
  actor: Actor;
  isAllowed: KeyCheck;
  /** Follows the feed again from a position. */
  followFrom: (from: FeedStart) => AsyncIterable<FeedPage>;
  /** The name of the server-sent events: their type by default. */
  name: 'type' | 'message' | undefined;
}

/**
 * Resolves when the client has received what was written, except what the connection buffers anyway, or
 * has disconnected.
 */
async function responseDrained(response: ServerResponse): Promise<void> {
  while (response.writableNeedDrain && !response.closed) {
    const { promise, resolve } = Promise.withResolvers<void>();
    response.once('drain', resolve);
    const stopWatching = onResponseClosed(response, resolve);
    await promise;
    stopWatching();
    response.off('drain', resolve);
  }
}

/**
 * Streams the pages of a feed: each event with its cursor as id, and at intervals a position where no
 * event comes. Events whose texts were erased before they could be sent are read again, without the texts. It
 * ends when the key is no longer valid; an error is its last event.
 */
export async function* streamEvents(
  api: RouteContext,
  { actor, isAllowed, name, followFrom }: FeedReader,
  firstPages: AsyncIterable<FeedPage>,
  ctx: Context,
): AsyncGenerator<SseEvent, void> {
  const { keys } = api.store;
  const subject = accountStream(actor.account_id);
  const toSseEvent = (item: FeedItem): SseEvent => ({
    id: item.cursor,
    event: name === 'message' ? name : item.event.type,
    data: formatFeedItem(item, api.eventSource),
  });
  const isOutdated = async ({ textStream }: FeedItem): Promise<boolean> =>
    textStream !== undefined && keys.isErased(textStream);
  let sentAt = -Infinity;
  let sentUpTo: FeedStart = 'start';
  let pages: AsyncIterable<FeedPage> | undefined = firstPages;
  try {
    // In one generator: another one that it delegates to would keep the sent event in memory.
    while (pages) {
      let isBehind = false;
      for await (const { items, cursor } of pages) {
        if (!(await isAllowed())) return;
        if (items.length > 0) await api.readAudit.record(api, actor, 'feed', subject);
        // Without a variable for the item, which a suspended generator would keep in memory.
        for (let index = 0; index < items.length; index += 1) {
          isBehind = await isOutdated(items[index]!);
          if (isBehind) break;
          sentUpTo = { after: items[index]!.cursor };
          yield toSseEvent(items[index]!);
        }
        if (isBehind) break;
        // The next page releases the memory of this one.
        if (items.length > 0) await responseDrained(ctx.res);
        if (cursor !== undefined) sentUpTo = { after: cursor };
        const now = performance.now();
        const isDue = now - sentAt >= LIMITS.feed.progressMs;
        if (items.length === 0 && cursor !== undefined && isDue) yield positionEvent(cursor);
        else if (items.length === 0) continue;
        sentAt = now;
      }
      pages = isBehind ? followFrom(sentUpTo) : undefined;
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
