import type { Context } from 'koa';
import type { FeedPage, FeedStart } from '../../../shared/feed/accountFeed.ts';
import { isCursor, positionUnknown } from '../../../shared/feed/cursor.ts';
import { resolvesWithin } from '../../../shared/lib/time/resolvesWithin.ts';
import { clientLeft, whenClosed } from '../http/connection/clientDisconnect.ts';
import { linkNext } from '../http/responses/envelope.ts';
import { sendEventStream } from '../http/responses/sse.ts';
import { feedPage } from './pollEvents.ts';
import { feedStream } from './streamEvents.ts';
import { STREAM_ERRORS } from '../http/errors/streamErrorCodes.ts';
import { defineRoute } from '../http/route.ts';
import { EventsQuery, FeedText, LastEventId } from './schemas.ts';

const SSE = 'text/event-stream; charset=utf-8';
const JSONL = 'application/jsonl; charset=utf-8';

/** So long a stream keeps its status back, for what is wrong with its first events. */
const FIRST_LOOK_MS = 1_000;

/** Errors: `position_unknown` for a `Last-Event-ID` that is no cursor: no log has such a one. */
function startOf(ctx: Context, { after, from }: { after?: string; from?: string }): FeedStart {
  const last = ctx.get('last-event-id');
  if (last !== '' && !isCursor(last)) throw positionUnknown();
  const cursor = last === '' ? after : last;
  if (cursor !== undefined) return { after: cursor };
  return from === 'now' ? 'now' : 'start';
}

/** The pages, once it is known whether the first of them can be shown. Errors: those of followAccount. */
async function begun(
  pages: AsyncGenerator<FeedPage, void>,
): Promise<AsyncGenerator<FeedPage, void>> {
  const first = await pages.next();
  const second = pages.next();
  await resolvesWithin(second, FIRST_LOOK_MS);
  return (async function* () {
    if (!first.done) yield first.value;
    const next = await second;
    if (!next.done) yield next.value;
    yield* pages;
  })();
}

export const followEventsRoute = defineRoute({
  method: 'get',
  path: '/v1/events',
  operationId: 'followEvents',
  summary: "Follows the events of the account's agents and sessions",
  description:
    'The same events as in Kafka, in the order of the log: first what there is, then what comes. As server-sent events (the default), which end only with the connection: `id` is the cursor to go on from with `Last-Event-ID`, `event` the type, `data` the event; `position` has only a later cursor, `error` is a failure and the last. Or, with `format=jsonl`, as a page whose `Link` always leads on. An event is known by its `id`.',
  access: 'events:read',
  query: EventsQuery,
  headers: { 'Last-Event-ID': LastEventId },
  media: SSE,
  orMedia: JSONL,
  data: FeedText,
  errors: ['position_unknown', 'log_changed', ...STREAM_ERRORS],
  handle: async (api, { actor, query }, ctx) => {
    const { account_id: accountId } = actor;
    const from = startOf(ctx, query);
    const types = query.types === undefined ? undefined : new Set(query.types.split(','));
    const place = api.followers.acquire({ account_id: accountId, bytes: 0 });
    const left = new AbortController();
    whenClosed(ctx.res, () => {
      place.release();
      left.abort(clientLeft());
    });
    const options = { from, types, signal: left.signal };
    if (query.format === 'jsonl') {
      const { text, cursor } = await feedPage(api.feed, {
        ...options,
        accountId,
        source: api.eventSource,
        limit: query.limit ?? 100,
        waitMs: (query.wait ?? 0) * 1_000,
      });
      if (cursor !== undefined) linkNext(ctx, cursor);
      return { bytes: Buffer.from(text), media: JSONL };
    }
    const following = api.feed.followAccount(accountId, options);
    whenClosed(ctx.res, () => void following.return());
    const pages = await begun(following);
    sendEventStream(ctx, () => feedStream(api, actor, pages, ctx));
    return undefined;
  },
});
