import { EventSourceParserStream, type EventSourceMessage } from 'eventsource-parser/stream';

/** The server-sent events in the body of a response, until it ends. */
export async function* eventsIn(response: Response): AsyncGenerator<EventSourceMessage> {
  const events = response
    .body!.pipeThrough(new TextDecoderStream())
    .pipeThrough(new EventSourceParserStream());
  const reader = events.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
