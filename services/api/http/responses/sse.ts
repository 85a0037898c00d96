import { Readable } from 'node:stream';
import type { Context } from 'koa';
import { LIMITS } from '../../../../shared/limits.ts';
import { responseClosedSignal } from '../connection/clientDisconnect.ts';

/** An event of a stream, as the HTML standard's server-sent events have it. */
export interface SseEvent {
  /** What `Last-Event-ID` names to go on behind it; without one, a client goes on before it. */
  id?: string;
  event: string;
  /** One line: JSON. */
  data: string;
}

const formatEvent = ({ id, event, data }: SseEvent): string =>
  `${id === undefined ? '' : `id: ${id}\n`}event: ${event}\ndata: ${data}\n\n`;

/** A comment, which clients pass over: proxies see that the connection lives. */
const HEARTBEAT = ':\n\n';

/** The events as text, with a heartbeat wherever none came for `heartbeatMs`. */
async function* formatEvents(
  events: AsyncIterator<SseEvent>,
  heartbeatMs: number,
): AsyncGenerator<string> {
  try {
    // The headers go out with it: who follows what is silent knows that it is heard.
    yield HEARTBEAT;
    for (let next = events.next(); ;) {
      const { promise: silence, resolve } = Promise.withResolvers<'silence'>();
      const timer = setTimeout(resolve, heartbeatMs, 'silence');
      const came = await Promise.race([next, silence]).finally(() => clearTimeout(timer));
      if (came === 'silence') yield HEARTBEAT;
      else if (came.done) return;
      else {
        yield formatEvent(came.value);
        next = events.next();
      }
    }
  } finally {
    await events.return?.();
  }
}

/**
 * Answers with a stream of events (text/event-stream), read no faster than the client takes them.
 * It ends with the events, and `signal` aborts when the client leaves: whatever `events` waits for
 * must end then. What they throw cuts the connection, so that clients come again.
 */
export function sendEventStream(
  ctx: Context,
  events: (signal: AbortSignal) => AsyncIterable<SseEvent>,
  heartbeatMs: number = LIMITS.http.heartbeatMs,
): void {
  const text = formatEvents(
    events(responseClosedSignal(ctx.res))[Symbol.asyncIterator](),
    heartbeatMs,
  );
  ctx.status = 200;
  ctx.type = 'text/event-stream; charset=utf-8';
  ctx.set('cache-control', 'no-store');
  // Proxies (nginx) would hold events back otherwise.
  ctx.set('x-accel-buffering', 'no');
  ctx.body = Readable.from(text, { objectMode: false, highWaterMark: LIMITS.http.streamBytes });
}
