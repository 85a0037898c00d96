import { Readable } from 'node:stream';
import type { Context } from 'koa';
import { LIMITS } from '../../../shared/limits.ts';
import type { Page } from '../../../shared/ports/readModels.ts';
import type { AgentRow } from '../../../shared/readModels/tables.ts';
import { agentListCache } from './listCache.ts';
import type { RouteContext } from '../context.ts';
import { JSON_TYPE, setNextLink, sendJson, wantsPretty } from '../http/responses/envelope.ts';
import { computeEtag, respondNotModified } from '../http/responses/etag.ts';
import type { ResponsePermit } from '../http/responses/responseMemory.ts';
import { destroyOnError } from '../http/connection/destroyOnError.ts';
import { renderList, PAGE_BUFFER_BYTES, renderPage } from '../http/responses/listResponse.ts';
import type { RenderedPage, RenderOptions, ListFormat } from '../http/responses/listResponse.ts';
import { presentAgent } from './presenter.ts';
import { AgentList } from './schemas.ts';
import { yieldToEventLoop } from '../../../shared/lib/concurrency/yieldToEventLoop.ts';

const AGENT_LIST: ListFormat<AgentRow> = {
  emptyData: [],
  present: presentAgent,
  cursorOf: ({ agent_id }) => agent_id,
};
/** Memory of a list while it is streamed. */
const STREAM_BYTES = 4 * LIMITS.http.batchBytes;

/** Changes with the schema, so that releases with another presentation have other ETags. */
const SCHEMA_ETAG = computeEtag(JSON.stringify(AgentList));

interface AgentListQuery {
  limit?: number;
  after?: string;
}

interface AgentListRequest {
  api: RouteContext;
  accountId: string;
  ctx: Context;
  permit: ResponsePermit;
}

/** Reads the first chunks of a list: all of them where the list is small enough to be cached. */
async function readFirstChunks(pieces: AsyncGenerator<Buffer, void>) {
  const first: Buffer[] = [];
  for (let bytes = 0; bytes <= LIMITS.cache.agentListEntryBytes; bytes += first.at(-1)!.length) {
    const { done, value } = await pieces.next();
    if (done) return { first, isWhole: true };
    first.push(value);
  }
  return { first, isWhole: false };
}

const renderOptions = ({ accountId, ctx }: AgentListRequest): RenderOptions => ({
  account_id: accountId,
  pretty: wantsPretty(ctx),
});

async function renderAllAgents(
  listing: AgentListRequest,
  after: string | undefined,
): Promise<Buffer | undefined> {
  const { api, accountId, ctx, permit } = listing;
  const read = (last = after) =>
    api.readModels.listAgents(accountId, {
      limit: LIMITS.http.pageEntries,
      bytes: LIMITS.http.batchBytes,
      ...(last === undefined ? {} : { after: last }),
    });
  const pieces = renderList(read, AGENT_LIST, renderOptions(listing));
  const { first, isWhole } = await readFirstChunks(pieces);
  if (isWhole) return Buffer.concat(first);
  await permit.holdUntilSent(STREAM_BYTES);
  sendJson(
    ctx,
    200,
    Readable.from(destroyOnError(first, pieces, api.logger, ctx), { objectMode: false }),
  );
  return undefined;
}

/** Sends the account's agents: from the cache, as a page, or all of them while they are read. */
export async function sendAgentList(
  api: RouteContext,
  accountId: string,
  { limit, after }: AgentListQuery,
  ctx: Context,
): Promise<void> {
  const { readModels, responseMemory } = api;
  const version = await readModels.agentListVersion(accountId);
  if (respondNotModified(ctx, computeEtag(SCHEMA_ETAG, version))) return;
  const key = { accountId, limit, after, pretty: wantsPretty(ctx) };
  const cache = agentListCache(readModels);
  let answer = cache.find(key, version);
  if (!answer && limit === undefined && ctx.method === 'HEAD') {
    ctx.type = JSON_TYPE;
    return;
  }
  using permit = await responseMemory.acquire(
    accountId,
    answer?.body.length ?? PAGE_BUFFER_BYTES,
    ctx.res,
  );
  if (!answer) {
    const rendered = await renderAgents(limit, after, { api, accountId, ctx, permit });
    if (!rendered) return;
    answer = { version, ...rendered };
    cache.store(key, answer);
  }
  await permit.holdUntilSent(answer.body.length);
  if (answer.nextCursor !== undefined) setNextLink(ctx, answer.nextCursor);
  sendJson(ctx, 200, answer.body);
}

async function renderAgents(
  limit: number | undefined,
  after: string | undefined,
  listing: AgentListRequest,
): Promise<RenderedPage | undefined> {
  if (limit === undefined) {
    const body = await renderAllAgents(listing, after);
    return body && { body, nextCursor: undefined };
  }
  const page: Page = {
    limit,
    bytes: LIMITS.http.pageBytes,
    ...(after === undefined ? {} : { after }),
  };
  const { api, accountId } = listing;
  await yieldToEventLoop(accountId);
  return renderPage(
    await api.readModels.listAgents(accountId, page),
    AGENT_LIST,
    renderOptions(listing),
  );
}
