import { Readable } from 'node:stream';
import type { Context } from 'koa';
import { recordAudit } from '../../../shared/audit/commands.ts';
import type { AuditData } from '../../../shared/audit/events.ts';
import type { Actor } from '../../../shared/commandHandling/context.ts';
import { shutdownError } from '../../../shared/runs/queueing/runsInFlight.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { clientDisconnectError, onResponseClosed } from '../http/connection/clientDisconnect.ts';
import type { RouteContext } from '../context.ts';
import { unauthorizedError } from '../../../shared/accounts/authenticate.ts';
import { createKeyCheck } from '../http/access/keyRevocation.ts';
import { destroyOnError } from '../http/connection/destroyOnError.ts';

/** The media type of every export: one JSON document per line. */
export const JSON_LINES = 'application/jsonl; charset=utf-8';
/** For clients that accept only text. */
export const PLAIN_TEXT = 'text/plain; charset=utf-8';

interface ExportRequest {
  api: RouteContext;
  actor: Actor;
  ctx: Context;
  /** Sets the media type and other headers of the response. */
  setHeaders: (ctx: Context) => void;
}

/** An export that is ready to be sent. */
interface OpenedExport {
  audited: AuditData;
  chunks: AsyncGenerator<Buffer, void>;
}

/** JSON lines, or text for a client that accepts nothing else. */
export function setExportType(ctx: Context): void {
  ctx.type =
    ctx.accepts('application/jsonl', 'text/plain') === 'text/plain' ? PLAIN_TEXT : JSON_LINES;
}

/** Ends an export when the client's key is revoked or the service stops. */
async function* untilInterrupted(
  chunks: AsyncGenerator<Buffer, void>,
  { api, actor }: ExportRequest,
): AsyncGenerator<Buffer, void> {
  const isAllowed = createKeyCheck(api, actor);
  for await (const chunk of chunks) {
    if (!(await isAllowed())) throw unauthorizedError();
    if (api.stopping.aborted) throw shutdownError();
    yield chunk;
  }
}

/**
 * Streams the chunks of `open` to the client, no faster than it reads them. `open` is called when
 * memory is acquired: an export reads everything there. The response starts when the first
 * chunk is ready and the export is in the audit; a later error cuts the connection. The signal aborts
 * when the client disconnects.
 */
export async function sendExport(
  request: ExportRequest,
  open: (signal: AbortSignal) => Promise<OpenedExport>,
): Promise<void> {
  const { api, actor, ctx, setHeaders } = request;
  const { account_id } = actor;
  const permit = api.openStreams.acquire({ account_id });
  const disconnected = new AbortController();
  const cleanups: (() => unknown)[] = [
    permit.release,
    () => disconnected.abort(clientDisconnectError()),
  ];
  // One listener for all of them: Node warns of more than ten.
  onResponseClosed(ctx.res, () => {
    for (const cleanUp of cleanups) cleanUp();
  });
  const onClosed = (cleanUp: () => unknown): void => {
    if (ctx.res.closed) cleanUp();
    else cleanups.push(cleanUp);
  };
  onClosed((await api.responseMemory.acquire(account_id, LIMITS.export.bytes, ctx.res)).release);
  const opened = await open(disconnected.signal);
  const chunks = untilInterrupted(opened.chunks, request);
  onClosed(() => void chunks.return());
  const first = await chunks.next();
  await recordAudit(api, actor, opened.audited);
  ctx.status = 200;
  setHeaders(ctx);
  const text = destroyOnError(first.done ? [] : [first.value], chunks, api.logger, ctx);
  ctx.body = Readable.from(text, { objectMode: false, highWaterMark: LIMITS.http.streamBytes });
}
