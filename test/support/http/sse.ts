import { createParser } from 'eventsource-parser';

/** An event of a stream, its data parsed. */
export interface Heard {
  id: string | undefined;
  event: string | undefined;
  data: any;
}

export interface EventStream {
  status: number;
  headers: Headers;
  /** The events as they come; it ends with the stream, or throws where that is cut. */
  events: AsyncGenerator<Heard>;
  /** Leaves. */
  leave(): void;
}

/** The events in the body of an answer. */
async function* eventsIn(body: AsyncIterable<Uint8Array>): AsyncGenerator<Heard> {
  const heard: Heard[] = [];
  const parser = createParser({
    onEvent: ({ id, event, data }) => heard.push({ id, event, data: JSON.parse(data) as unknown }),
  });
  const decoder = new TextDecoder('utf-8', { fatal: true });
  for await (const bytes of body) {
    parser.feed(decoder.decode(bytes, { stream: true }));
    yield* heard.splice(0);
  }
}

/** Opens a stream of events. */
export async function openEvents(url: string, init: RequestInit): Promise<EventStream> {
  const left = new AbortController();
  const response = await fetch(url, {
    ...init,
    headers: { accept: 'text/event-stream', ...(init.headers as Record<string, string>) },
    signal: left.signal,
  });
  return {
    status: response.status,
    headers: response.headers,
    events: eventsIn((response.body ?? []) as AsyncIterable<Uint8Array>),
    leave: () => left.abort(),
  };
}

/** All events of a stream that ends. */
export async function allEvents(stream: EventStream): Promise<Heard[]> {
  const heard: Heard[] = [];
  for await (const one of stream.events) heard.push(one);
  return heard;
}

/** The text of a round in the events of a turn. */
export const textIn = (events: readonly Heard[], round?: number): string =>
  events
    .filter(({ event, data }) => event === 'output.delta' && (round ?? data.round) === data.round)
    .map(({ data }) => data.text as string)
    .join('');
