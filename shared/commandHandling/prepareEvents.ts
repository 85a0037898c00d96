import type { DomainEvent } from '../eventlog/eventTypes.ts';
import type { Authorship, StreamHead } from '../eventlog/append.ts';
import { requireValidEvent } from '../eventlog/domainEvent.ts';
import { accountStream } from '../eventlog/streams.ts';
import type { Keyring } from '../eventlog/encryption/keyring.ts';
import type { TextKey } from '../eventlog/encryption/protectedText.ts';
import { unauthorizedError } from '../accounts/authenticate.ts';
import { commitEventTexts, type SealedEvents } from '../eventlog/encryption/sealTexts.ts';
import { yieldForText } from '../lib/concurrency/yieldToEventLoop.ts';
import { isoTime, recordingTime } from '../ports/clock.ts';
import type { Actor, CommandContext } from './context.ts';

/** An actor, and the event or request that caused its events. */
export interface Author extends Actor {
  causation_id: string;
}

/** The author of the first events of a request. */
export const authorOf = (actor: Actor): Author => ({ ...actor, causation_id: actor.request_id });

/** Decided events with ids, time and sealed texts. Their hashes are the same at each append. */
export interface PreparedEvents extends SealedEvents {
  authorship: Authorship;
}

/** Characters of the top-level texts of an event; nested texts are short. */
const charsOf = ({ data }: DomainEvent): number =>
  Object.values(data).reduce<number>(
    (sum, value: unknown) => sum + (typeof value === 'string' ? value.length : 0),
    0,
  );

/**
 * A key for a new stream. The erasure of an account misses streams that begin after it, and a request
 * may have passed its checks before.
 */
async function issueKeyTo(
  account_id: string,
  keys: Pick<Keyring, 'issueKey' | 'isErased'>,
): Promise<TextKey> {
  if (await keys.isErased(accountStream(account_id))) throw unauthorizedError();
  return keys.issueKey();
}

/**
 * Adds ids, time and author to decided events, and seals their texts with the key of their stream,
 * if it is known. Throws `quota_exceeded`, `storage_full`, `unauthorized` for a new stream of an erased
 * account, and the errors of commitEventTexts.
 */
export async function prepareEvents(
  { ids, clock, store }: Pick<CommandContext, 'ids' | 'clock' | 'store'>,
  { account_id, key_id, request_id, causation_id }: Author,
  { key }: Pick<StreamHead, 'key'>,
  events: readonly DomainEvent[],
): Promise<PreparedEvents> {
  events.forEach(requireValidEvent);
  const chars = events.reduce((sum, event) => sum + charsOf(event), 0);
  // At least so many bytes: the append counts them exactly.
  await store.requireRoom?.(account_id, events, chars);
  await yieldForText(account_id, chars);
  const recorded_at = isoTime(recordingTime(clock));
  const decided = events.map((event) => ({ id: ids.uuid(), ...event }));
  return {
    ...(await commitEventTexts(
      { issueKey: () => issueKeyTo(account_id, store.keys) },
      key,
      decided,
    )),
    authorship: { account_id, key_id, request_id, causation_id, recorded_at },
  };
}
