import { randomUUID } from 'node:crypto';
import type { Actor } from '../../../shared/commandHandling/context.ts';
import type { HandleContext } from '../../../shared/commandHandling/handle.ts';
import { authorOf, prepareEvents } from '../../../shared/commandHandling/prepareEvents.ts';
import { appendEvents, NO_STREAM, type StreamHead } from '../../../shared/eventlog/append.ts';
import type { DomainEvent } from '../../../shared/eventlog/eventTypes.ts';
import { createDamagedStreams } from '../../../shared/eventlog/reading/damagedStreams.ts';

/** What commands need, over a store, at a fixed time. An id of a type is its prefix. */
export const handleContext = (store: HandleContext['store'], now: number): HandleContext => ({
  store,
  damaged: createDamagedStreams(() => undefined),
  clock: { now: () => now },
  ids: { uuid: randomUUID, typeId: (prefix) => prefix },
});

/** Writes the first events of a stream. */
export async function writeStream(
  context: HandleContext,
  actor: Actor,
  stream: string,
  events: readonly DomainEvent[],
): Promise<StreamHead> {
  const facts = await prepareEvents(context, authorOf(actor), NO_STREAM, events);
  return (await appendEvents(context.store, { stream, head: NO_STREAM }, facts)).head;
}
