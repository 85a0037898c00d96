import { Readable } from 'node:stream';
import type { Context } from 'koa';
import { recordAudit } from '../../../shared/audit/commands.ts';
import type { Actor } from '../../../shared/commandHandling/context.ts';
import { shutdownError } from '../../../shared/runs/queueing/runsInFlight.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { clientDisconnectError, onResponseClosed } from '../http/connection/clientDisconnect.ts';
import type { RouteContext } from '../context.ts';
import { unauthorizedError } from '../http/access/loginThrottle.ts';
import { createKeyCheck } from '../http/access/keyRevocation.ts';
import { destroyOnError } from '../http/connection/destroyOnError.ts';

/** The media type of every export: a JSON document a line. */
export const JSON_LINES = 'application/jsonl; charset=utf-8';
/** The same for clients that take no media type but those of texts. */
export const PLAIN_TEXT = 'text/plain; charset=utf-8';

interface ExportRequest {
  api: RouteContext;
  actor: Actor;
  ctx: Context;
  /** The stream that the audit names. */
  subject: string;
}

/** Ends what goes on for long. Errors: `unauthorized`, `store_unavailable`. */
async function* untilInterrupted(
  pieces: AsyncGenerator<Buffer, void>,
  { api, actor }: ExportRequest,
): AsyncGenerator<Buffer, void> {
  const isAllowed = createKeyCheck(api, actor);
  for await (const piece of pieces) {
    if (!(await isAllowed())) throw unauthorizedError();
    if (api.stopping.aborted) throw shutdownError();
    yield piece;
  }
}

/**
 * Answers with what `make` gives, read no faster than the client takes it, once there is room for it,
 * its first piece is made, and it is in the audit. What fails after that cuts the connection.
 * The signal aborts when the client leaves.
 * Errors: `rate_limited`, `overloaded`, those of recordAudit and of the first piece.
 */
export async function sendExport(
  exporting: ExportRequest,
  detail: string,
  make: (signal: AbortSignal) => Promise<AsyncGenerator<Buffer, void>>,
): Promise<void> {
  const { api, actor, ctx, subject } = exporting;
  const { account_id } = actor;
  const place = api.openStreams.acquire({ account_id, bytes: 0 });
  const left = new AbortController();
  const taken: (() => unknown)[] = [place.release, () => left.abort(clientDisconnectError())];
  // One listener for all of it: an answer has few of them.
  onResponseClosed(ctx.res, () => {
    for (const giveBack of taken) giveBack();
  });
  const untilClosed = (giveBack: () => unknown): void => {
    if (ctx.res.closed) giveBack();
    else taken.push(giveBack);
  };
  untilClosed((await api.responseMemory.acquire(account_id, LIMITS.export.bytes, ctx.res)).release);
  const pieces = untilInterrupted(await make(left.signal), exporting);
  untilClosed(() => void pieces.return());
  const first = await pieces.next();
  await recordAudit(api, actor, { action: 'export', subject, detail });
  ctx.status = 200;
  ctx.type =
    ctx.accepts('application/jsonl', 'text/plain') === 'text/plain' ? PLAIN_TEXT : JSON_LINES;
  const text = destroyOnError(first.done ? [] : [first.value], pieces, api.logger, ctx);
  ctx.body = Readable.from(text, { objectMode: false, highWaterMark: LIMITS.http.streamBytes });
}
