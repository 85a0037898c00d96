import type { DomainEvent } from '../domain/events.ts';
import { appendEvents, type Authorship, type StreamHead } from '../eventlog/append.ts';
import { requireFits } from '../eventlog/domainEvent.ts';
import type { NewEvent } from '../eventlog/event.ts';
import { isoTime } from '../ports/clock.ts';
import type { EventStore, Position } from '../ports/eventStore.ts';
import type { Actor, CommandContext } from './context.ts';

/** Who acts, and the event or the request that led to it. */
export interface Author extends Actor {
  causation_id: string;
}

/** The author of what a request leads to at first. */
export const authorOf = (actor: Actor): Author => ({ ...actor, causation_id: actor.request_id });

/** What was decided, with ids and time: however often it is appended, it is the same. */
export interface Facts {
  events: NewEvent[];
  authorship: Authorship;
}

/** Gives decided events their ids, their time and their author. Errors: `event_invalid`. */
export function factsOf(
  { ids, clock }: Pick<CommandContext, 'ids' | 'clock'>,
  { account_id, key_id, request_id, causation_id }: Author,
  events: readonly DomainEvent[],
): Facts {
  events.forEach(requireFits);
  return {
    events: events.map((event) => ({ id: ids.uuid(), ...event })),
    authorship: { account_id, key_id, request_id, causation_id, recorded_at: isoTime(clock.now()) },
  };
}

/** What an append made of a stream. */
export interface Appended {
  head: StreamHead;
  /** Of the last event, as is its id. */
  position: Position;
  lastEventId: string;
  recorded_at: string;
}

/** Appends facts, at least one, right after `head`. Errors: those of EventStore.append. */
export async function appendFacts(
  store: Pick<EventStore, 'append'>,
  target: { stream: string; head: StreamHead },
  { events, authorship }: Facts,
): Promise<Appended> {
  const appended = await appendEvents(store, target, events, authorship);
  return {
    ...appended,
    lastEventId: events.at(-1)!.id,
    recorded_at: authorship.recorded_at,
  };
}
