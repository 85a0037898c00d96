import { Readable } from 'node:stream';
import type { Context, Middleware } from 'koa';
import { runPaced } from '../../../../shared/lib/concurrency/pacedSteps.ts';
import { LIMITS } from '../../../../shared/limits.ts';
import { untilRevoked, type KeyCheck } from '../access/keyRevocation.ts';
import { clientDisconnectError, onResponseClosed } from '../connection/clientDisconnect.ts';

/** A server-sent event (HTML standard). */
export interface SseEvent {
  /** Sent as `Last-Event-ID` to continue after this event; without it, a client continues before. */
  id?: string;
  event: string;
  /** One line: JSON. */
  data: string;
}

/** The bytes of events, which many responses may share. */
const eventBytes = new WeakMap<SseEvent, Buffer>();

function bytesOf(event: SseEvent): Buffer {
  const cachedBytes = eventBytes.get(event);
  if (cachedBytes) return cachedBytes;
  const id = event.id === undefined ? '' : `id: ${event.id}\n`;
  const bytes = Buffer.from(`${id}event: ${event.event}\ndata: ${event.data}\n\n`);
  eventBytes.set(event, bytes);
  return bytes;
}

/** A comment, which clients ignore, keeps proxies from closing the connection. */
const HEARTBEAT = Buffer.from(':\n\n');

/** The bytes of the events, with a heartbeat after every `heartbeatMs` without one. */
function readEvents(events: AsyncIterator<SseEvent>, heartbeatMs: number): Readable {
  let isWaiting = false;
  let heartbeat: NodeJS.Timeout | undefined;

  /** Sends the headers, so that the client knows that it is connected. */
  function begin(): NodeJS.Timeout {
    stream.push(HEARTBEAT);
    return setInterval(() => isWaiting && stream.push(HEARTBEAT), heartbeatMs).unref();
  }

  /** Returns true if the stream takes more. A separate function, so that no event stays in memory during a wait. */
  async function pushNext(): Promise<boolean> {
    const { done, value } = await events.next();
    heartbeat?.refresh();
    if (stream.destroyed) return false;
    return stream.push(done ? null : bytesOf(value)) && !done;
  }

  async function pushEvents(): Promise<void> {
    isWaiting = true;
    heartbeat ??= begin();
    while (await pushNext());
    isWaiting = stream.destroyed;
  }

  const stream = new Readable({
    highWaterMark: LIMITS.http.streamBytes,
    read() {
      if (!isWaiting) pushEvents().catch((error: Error) => stream.destroy(error));
    },
  });
  stream.once('close', () => {
    clearInterval(heartbeat);
    events.return?.().catch(() => undefined);
  });
  return stream;
}

/** Starts the event stream of a response. */
const pendingStreams = new WeakMap<Context, () => void>();

/**
 * Sends the bytes without Koa, whose pipeline makes several errors and an abort for each client that
 * disconnects. Thousands may do so at once: `onClosed` is called for a few of them at a time.
 */
function pipeTo(ctx: Context, bytes: Readable, onClosed: () => void): void {
  const { res } = ctx;
  const account = (ctx.state['account_id'] as string | undefined) ?? '';
  onResponseClosed(res, () =>
    runPaced(account, () => {
      bytes.destroy();
      onClosed();
      return false;
    }),
  );
  bytes.once('error', (error) => {
    ctx.app.emit('error', error, ctx);
    res.destroy();
  });
  pendingStreams.set(ctx, () => {
    ctx.respond = false;
    // Reading a request to its end halves the cost of a disconnect, because Node then creates no error.
    if (ctx.req.complete) ctx.req.resume();
    if (ctx.method === 'HEAD') res.end();
    else if (!res.closed) bytes.pipe(res);
  });
}

/**
 * The outermost middleware: starts event streams after all others, which may still set headers. A body
 * is that of an error, which replaces the stream.
 */
export const startEventStreams: Middleware = async (ctx, next) => {
  await next();
  if (!ctx.body) pendingStreams.get(ctx)?.();
};

/**
 * Sends a stream of events (text/event-stream), read no faster than the client receives them.
 * `signal` aborts when the client disconnects; `events` must end then. An error from `events` cuts
 * the connection, so that clients reconnect. The stream ends when the client's key is no longer valid.
 */
export function sendEventStream(
  ctx: Context,
  isAllowed: KeyCheck,
  events: (signal: AbortSignal) => AsyncIterable<SseEvent>,
  heartbeatMs: number = LIMITS.http.heartbeatMs,
): void {
  const disconnected = new AbortController();
  const allowed = untilRevoked(events(disconnected.signal), isAllowed);
  ctx.status = 200;
  ctx.type = 'text/event-stream; charset=utf-8';
  ctx.set('cache-control', 'no-store');
  // Keeps proxies (nginx) from buffering events.
  ctx.set('x-accel-buffering', 'no');
  pipeTo(ctx, readEvents(allowed, heartbeatMs), () => disconnected.abort(clientDisconnectError()));
}
