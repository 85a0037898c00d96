import { Readable } from 'node:stream';
import type { Context } from 'koa';
import { LIMITS } from '../../../../shared/limits.ts';
import { untilRevoked, type KeyCheck } from '../access/keyRevocation.ts';
import { responseClosedSignal } from '../connection/clientDisconnect.ts';

/** A server-sent event (HTML standard). */
export interface SseEvent {
  /** Sent as `Last-Event-ID` to continue after this event; without it, a client continues before. */
  id?: string;
  event: string;
  /** One line: JSON. */
  data: string;
}

const formatEvent = ({ id, event, data }: SseEvent): string =>
  `${id === undefined ? '' : `id: ${id}\n`}event: ${event}\ndata: ${data}\n\n`;

/** A comment, which clients ignore, keeps proxies from closing the connection. */
const HEARTBEAT = ':\n\n';

/** The events as text, with a heartbeat after every `heartbeatMs` without one. */
async function* formatEvents(
  events: AsyncIterator<SseEvent>,
  heartbeatMs: number,
): AsyncGenerator<string> {
  try {
    // Sends the headers, so that the client knows that it is connected.
    yield HEARTBEAT;
    for (let next = events.next(); ;) {
      const { promise: timeout, resolve } = Promise.withResolvers<'timeout'>();
      const timer = setTimeout(resolve, heartbeatMs, 'timeout');
      const outcome = await Promise.race([next, timeout]).finally(() => clearTimeout(timer));
      if (outcome === 'timeout') yield HEARTBEAT;
      else if (outcome.done) return;
      else {
        yield formatEvent(outcome.value);
        next = events.next();
      }
    }
  } finally {
    await events.return?.();
  }
}

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
  const text = formatEvents(
    untilRevoked(events(responseClosedSignal(ctx.res)), isAllowed),
    heartbeatMs,
  );
  ctx.status = 200;
  ctx.type = 'text/event-stream; charset=utf-8';
  ctx.set('cache-control', 'no-store');
  // Keeps proxies (nginx) from buffering events.
  ctx.set('x-accel-buffering', 'no');
  ctx.body = Readable.from(text, { objectMode: false, highWaterMark: LIMITS.http.streamBytes });
}
