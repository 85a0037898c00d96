import type { DomainEvent } from '../eventlog/eventTypes.ts';
import type { Authorship, StreamHead } from '../eventlog/append.ts';
import { requireFits } from '../eventlog/domainEvent.ts';
import { sealEvents, type SealedEvents } from '../eventlog/encryption/sealTexts.ts';
import { yieldForText } from '../lib/concurrency/yieldToEventLoop.ts';
import { isoTime } from '../ports/clock.ts';
import type { Actor, CommandContext } from './context.ts';

/** Who acts, and the event or the request that led to it. */
export interface Author extends Actor {
  causation_id: string;
}

/** The author of what a request leads to at first. */
export const authorOf = (actor: Actor): Author => ({ ...actor, causation_id: actor.request_id });

/**
 * What was decided, with ids and time, its texts committed to: however often it is appended, its
 * hashes are the same.
 */
export interface PreparedEvents extends SealedEvents {
  authorship: Authorship;
}

/** Characters of the event's own texts; what lies deeper is short. */
const charsOf = ({ data }: DomainEvent): number =>
  Object.values(data).reduce<number>(
    (sum, value: unknown) => sum + (typeof value === 'string' ? value.length : 0),
    0,
  );

/**
 * Gives decided events their ids, their time and their author, and seals their texts, with the key
 * of their stream where that is known.
 */
export async function prepareEvents(
  { ids, clock, store }: Pick<CommandContext, 'ids' | 'clock' | 'store'>,
  { account_id, key_id, request_id, causation_id }: Author,
  { key }: Pick<StreamHead, 'key'>,
  events: readonly DomainEvent[],
): Promise<PreparedEvents> {
  events.forEach(requireFits);
  const chars = events.reduce((sum, event) => sum + charsOf(event), 0);
  await yieldForText(account_id, chars);
  const decided = events.map((event) => ({ id: ids.uuid(), ...event }));
  const recorded_at = isoTime(clock.now());
  return {
    ...(await sealEvents(store.keys, key, decided)),
    authorship: { account_id, key_id, request_id, causation_id, recorded_at },
  };
}
