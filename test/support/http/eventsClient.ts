import { createParser, type EventSourceMessage } from 'eventsource-parser';

/** A stream of server-sent events, as a client reads it. */
export interface OpenStream {
  status: number;
  headers: Headers;
  /** What has come so far. */
  events: EventSourceMessage[];
  comments: string[];
  /** Resolves once what has come satisfies. Errors: an Error where the stream ends before. */
  until(satisfied: (events: readonly EventSourceMessage[]) => boolean): Promise<void>;
  /** Resolves when the server has ended the stream; rejects where it was cut. */
  ended: Promise<void>;
  /** Leaves. */
  cut(): void;
}

/** Opens a stream of events. */
export async function openStream(
  url: string,
  key: string,
  headers: Record<string, string> = {},
): Promise<OpenStream> {
  const leaving = new AbortController();
  const response = await fetch(url, {
    headers: { 'x-api-key': key, ...headers },
    signal: leaving.signal,
  });
  const events: EventSourceMessage[] = [];
  const comments: string[] = [];
  let isOver = false;
  const waiting = new Set<() => void>();
  const parser = createParser({
    onEvent: (event) => void events.push(event),
    onComment: (comment) => void comments.push(comment),
  });
  async function read(): Promise<void> {
    try {
      for await (const text of response.body!.pipeThrough(new TextDecoderStream())) {
        parser.feed(text);
        waiting.forEach((look) => look());
      }
    } finally {
      isOver = true;
      waiting.forEach((look) => look());
    }
  }
  const ended = read();
  ended.catch(() => undefined);
  return {
    status: response.status,
    headers: response.headers,
    events,
    comments,
    ended,
    until: (satisfied) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const isThere = satisfied(events);
          if (!isThere && !isOver) return;
          waiting.delete(look);
          if (isThere) resolve();
          else reject(new Error(`the stream ended with ${JSON.stringify(events.slice(-3))}`));
        };
        waiting.add(look);
        look();
      }),
    cut: () => leaving.abort(),
  };
}

/** The data of the events of an account, without those that only tell a position. */
export const feedEvents = (events: readonly EventSourceMessage[]): any[] =>
  events.filter(({ event }) => event?.startsWith('turnlog.')).map(({ data }) => JSON.parse(data));
