import { EventSourceParserStream, type EventSourceMessage } from 'eventsource-parser/stream';

/** The server-sent events in the body of a response, until it ends. */
export async function* eventsIn(response: Response): AsyncGenerator<EventSourceMessage> {
  const texts = response.body!.pipeThrough(new TextDecoderStream());
  const reader = texts.pipeThrough(new EventSourceParserStream()).getReader();
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value;
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
