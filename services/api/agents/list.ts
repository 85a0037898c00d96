import { Readable } from 'node:stream';
import type { Context } from 'koa';
import { LIMITS } from '../../../shared/limits.ts';
import type { Page } from '../../../shared/ports/readModels.ts';
import type { AgentRow } from '../../../shared/readModels/tables.ts';
import { agentListCache } from './listCache.ts';
import type { RouteContext } from '../context.ts';
import { JSON_TYPE, linkNext, sendJson, wantsPretty } from '../http/responses/envelope.ts';
import { etagOf, isKnown } from '../http/responses/etag.ts';
import { orCut } from '../http/connection/destroyOnError.ts';
import { listPieces, MAKING_BYTES, pageBody } from '../http/responses/listResponse.ts';
import type { PageBody, Recipient, Rows } from '../http/responses/listResponse.ts';
import { presentAgent } from './presenter.ts';
import { AgentList } from './schemas.ts';
import { yieldToEventLoop } from '../../../shared/lib/concurrency/yieldToEventLoop.ts';

const ROWS: Rows<AgentRow> = {
  around: [],
  present: presentAgent,
  cursorOf: ({ agent_id }) => agent_id,
};
/** What a list holds while it is on its way. */
const STREAM_BYTES = 4 * LIMITS.http.batchBytes;

/** A release that shows agents in another way has other names for the same list. */
const SHAPE = etagOf(JSON.stringify(AgentList));

interface Asked {
  limit?: number;
  after?: string;
}

interface Listing {
  api: RouteContext;
  accountId: string;
  ctx: Context;
}

/** The list's first bytes: all of it, where that is little enough to be kept. */
async function beginning(pieces: AsyncGenerator<Buffer, void>) {
  const first: Buffer[] = [];
  for (let bytes = 0; bytes <= LIMITS.cache.agentListEntryBytes; bytes += first.at(-1)!.length) {
    const { done, value } = await pieces.next();
    if (done) return { first, isWhole: true };
    first.push(value);
  }
  return { first, isWhole: false };
}

const recipientOf = ({ accountId, ctx }: Listing): Recipient => ({
  account_id: accountId,
  pretty: wantsPretty(ctx),
});

async function wholeList(listing: Listing, after: string | undefined): Promise<Buffer | undefined> {
  const { api, accountId, ctx } = listing;
  const read = (last = after) =>
    api.readModels.listAgents(accountId, {
      limit: LIMITS.http.pageEntries,
      bytes: LIMITS.http.batchBytes,
      ...(last === undefined ? {} : { after: last }),
    });
  const pieces = listPieces(read, ROWS, recipientOf(listing));
  const { first, isWhole } = await beginning(pieces);
  if (isWhole) return Buffer.concat(first);
  api.answers.holdUntilSent(accountId, STREAM_BYTES, ctx.res);
  sendJson(ctx, 200, Readable.from(orCut(first, pieces, api.logger, ctx), { objectMode: false }));
  return undefined;
}

/**
 * Answers the account's agents: from what was sent before, a page, or all of them as they are read.
 * Errors: `overloaded`, `store_unavailable`.
 */
export async function sendAgentList(
  api: RouteContext,
  accountId: string,
  { limit, after }: Asked,
  ctx: Context,
): Promise<void> {
  const { readModels, answers } = api;
  const version = await readModels.agentListVersion(accountId);
  if (isKnown(ctx, etagOf(SHAPE, version))) return;
  const asked = { accountId, limit, after, pretty: wantsPretty(ctx) };
  const cache = agentListCache(readModels);
  let answer = cache.find(asked, version);
  if (!answer && limit === undefined && ctx.method === 'HEAD') {
    ctx.type = JSON_TYPE;
    return;
  }
  const held = await answers.take(accountId, answer?.body.length ?? MAKING_BYTES, ctx.res);
  try {
    if (!answer) {
      const made = await make(limit, after, { api, accountId, ctx });
      if (!made) return;
      answer = { version, ...made };
      cache.keep(asked, answer);
    }
    answers.holdUntilSent(accountId, answer.body.length, ctx.res);
  } finally {
    held.release();
  }
  if (answer.next !== undefined) linkNext(ctx, answer.next);
  sendJson(ctx, 200, answer.body);
}

async function make(
  limit: number | undefined,
  after: string | undefined,
  listing: Listing,
): Promise<PageBody | undefined> {
  if (limit === undefined) {
    const body = await wholeList(listing, after);
    return body && { body, next: undefined };
  }
  const page: Page = {
    limit,
    bytes: LIMITS.http.pageBytes,
    ...(after === undefined ? {} : { after }),
  };
  const { api, accountId } = listing;
  await yieldToEventLoop(accountId);
  return pageBody(await api.readModels.listAgents(accountId, page), ROWS, recipientOf(listing));
}
