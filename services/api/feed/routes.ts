import type { Context } from 'koa';
import type { FeedStart } from '../../../shared/feed/accountFeed.ts';
import { isCursor } from '../../../shared/feed/cursor.ts';
import type { FeedMemory } from '../../../shared/feed/pageMemory.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { accountStream } from '../../../shared/eventlog/streams.ts';
import { clientDisconnectError, onResponseClosed } from '../http/connection/clientDisconnect.ts';
import type { RouteContext } from '../context.ts';
import { readLastEventId } from '../http/requestHeaders.ts';
import { setNextLink } from '../http/responses/envelope.ts';
import { createKeyCheck } from '../http/access/keyRevocation.ts';
import { sendEventStream } from '../http/responses/sse.ts';
import { pollEvents } from './pollEvents.ts';
import { awaitFirstPages, streamEvents } from './streamEvents.ts';
import { STREAM_ERROR_CODES } from '../http/errors/errorResponses.ts';
import { defineFeature } from '../http/feature.ts';
import { defineRoute } from '../http/route.ts';
import { EventsQuery, FeedText, LastEventId } from './schemas.ts';

const SSE = 'text/event-stream; charset=utf-8';
const JSONL = 'application/jsonl; charset=utf-8';

/** The largest delay of a timer: a stream waits for memory until its client disconnects. */
const UNLIMITED_MS = 2 ** 31 - 1;

/** The memory of responses, for events. Few and small events do not wait for it. */
const responseMemoryFor = (
  { memory }: Pick<RouteContext, 'memory'>,
  account_id: string,
  waitMs: number,
): FeedMemory => ({
  tryReserve(bytes) {
    const request = { account_id, purpose: 'answers', bytes } as const;
    return bytes <= LIMITS.http.smallAnswerBytes
      ? memory.forceReserve(request)
      : memory.tryReserve(request);
  },
  reserve: (bytes, signal) =>
    memory.reserve({ account_id, purpose: 'answers', bytes }, { waitMs, signal }),
});

const RULE = 'must be the cursor of an event, as the stream gave it';

const parseCursor = (id: string): string | undefined => (isCursor(id) ? id : undefined);

function parseFeedStart(
  ctx: Context,
  { after, from }: { after?: string; from?: string },
): FeedStart {
  const cursor = readLastEventId(ctx, parseCursor, RULE) ?? after;
  if (cursor !== undefined) return { after: cursor };
  return from === 'now' ? 'now' : 'start';
}

const followEventsRoute = defineRoute({
  method: 'get',
  path: '/v1/events',
  operationId: 'followEvents',
  summary: "Follows the events of the account's agents and sessions",
  description:
    'The same events as in Kafka, in log order: existing events first, then new ones. As server-sent events (the default), which end only with the connection: `id` is the cursor to continue from with `Last-Event-ID`, `event` the type (or `message`, with `event=message`, so that `onmessage` gets all events), `data` the event; `position` has only a later cursor, and `error`, a failure, is the last event. Or, with `format=jsonl`, as a page that always has a `Link` to the next one. Identify events by their `id`.',
  access: 'events:read',
  query: EventsQuery,
  headers: { 'Last-Event-ID': LastEventId },
  media: SSE,
  alternateMedia: JSONL,
  data: FeedText,
  errors: ['quota_exceeded', 'position_unknown', 'log_changed', ...STREAM_ERROR_CODES],
  handle: async (api, { actor, query }, ctx) => {
    const { account_id: accountId } = actor;
    const from = parseFeedStart(ctx, query);
    const types = query.types === undefined ? undefined : new Set(query.types.split(','));
    const permit = api.followers.acquire({ account_id: accountId });
    const disconnected = new AbortController();
    onResponseClosed(ctx.res, () => {
      permit.release();
      disconnected.abort(clientDisconnectError());
    });
    const options = { from, types, signal: disconnected.signal };
    if (query.format === 'jsonl') {
      const { text, cursor, release } = await pollEvents(api.feed, {
        ...options,
        memory: responseMemoryFor(api, accountId, LIMITS.http.answerWaitMs),
        accountId,
        source: api.eventSource,
        limit: query.limit ?? 100,
        waitMs: (query.wait ?? 0) * 1_000,
      });
      onResponseClosed(ctx.res, release);
      if (text !== '') await api.readAudit.record(api, actor, 'feed', accountStream(accountId));
      if (cursor !== undefined) setNextLink(ctx, cursor);
      const bytes = Buffer.from(text);
      // The router reserves memory for the bytes, and must not wait for it while the page holds some.
      release();
      return { bytes, media: JSONL };
    }
    const memory = responseMemoryFor(api, accountId, UNLIMITED_MS);
    const followFrom = (start: FeedStart) =>
      api.feed.followAccount(accountId, { ...options, from: start, memory });
    const following = followFrom(from);
    onResponseClosed(ctx.res, () => void following.return());
    const pages = await awaitFirstPages(following);
    const isAllowed = createKeyCheck(api, actor);
    sendEventStream(ctx, isAllowed, () =>
      streamEvents(api, { actor, isAllowed, name: query.event, followFrom }, pages, ctx),
    );
    return undefined;
  },
});

export const feedFeature = defineFeature({
  routes: [followEventsRoute],
  tags: { events: 'Events of agents and sessions, live' },
  errors: {
    position_unknown: {
      status: 409,
      description:
        'Nothing is at the position: it is of another log, of what a restored log has lost, or of another list. Start over, and skip the events whose ids you have',
    },
  },
});
