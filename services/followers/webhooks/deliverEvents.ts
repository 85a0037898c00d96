import { LIMITS } from '../../../shared/limits.ts';
import type { PublicEvent } from '../../../shared/publicEvents/publicEvent.ts';
import type { CommitSequence } from './commitSequence.ts';
import { MessageRejected, type Delivery } from './delivery.ts';

/** Waiting for the semaphore ends with a permit or the signal; it has no other limit. */
const WAIT_MS = 2 ** 31 - 1;

interface Attempt {
  sequence: CommitSequence;
  /** Sends one message at a time until one is accepted. */
  isProbe: boolean;
  /** Called whenever an event has become pending. */
  onPending: () => void;
}

/**
 * Delivers what follows the committed cursor until the signal aborts: the events of a key one after
 * another, those of several keys concurrently. After the first failure no further message is sent, and
 * those in flight end. Throws MessageRejected, and what following the account or opening the texts
 * throws.
 */
export async function deliverEvents(
  delivery: Delivery,
  { sequence, isProbe, onPending }: Attempt,
): Promise<void> {
  const { row } = delivery;
  const texts = await delivery.textsOf(row);
  const failed = new AbortController();
  const signal = AbortSignal.any([delivery.signal, failed.signal]);
  /** The latest message of each key. */
  const lastOfKey = new Map<string, Promise<void>>();
  let inFlight = 0;
  let limit: number = isProbe ? 1 : LIMITS.webhooks.ahead;
  const isFull = (): boolean => inFlight >= limit;

  async function send({ id }: PublicEvent, body: string): Promise<void> {
    signal.throwIfAborted();
    const outcome = await delivery.send({ ...texts, id, body, signal: delivery.cutOff });
    if (!outcome.accepted) throw new MessageRejected(outcome);
    limit = LIMITS.webhooks.ahead;
  }

  async function begin(event: PublicEvent, cursor: string): Promise<void> {
    while (isFull()) await Promise.race(lastOfKey.values());
    const body = delivery.bodyOf(event);
    const size = { account_id: row.account_id, bytes: Buffer.byteLength(body) };
    const permit = await delivery.semaphore.acquire(size, { waitMs: WAIT_MS, signal });
    const onDelivered = sequence.begin(cursor, event);
    inFlight += 1;
    const before = lastOfKey.get(event.key);
    const deliver = async (): Promise<void> => {
      try {
        await before;
        await send(event, body);
        onDelivered();
      } catch (error) {
        failed.abort(error);
      } finally {
        inFlight -= 1;
        permit.release();
        if (lastOfKey.get(event.key) === delivering) lastOfKey.delete(event.key);
      }
    };
    const delivering = deliver();
    lastOfKey.set(event.key, delivering);
    onPending();
  }

  sequence.restart();
  try {
    const { account_id: accountId, position, types } = row;
    const from = { accountId, position, types, cursor: delivery.progress().cursor };
    for await (const { event, cursor } of delivery.follow({ ...from, signal })) {
      delivery.onTrouble(undefined);
      if (event && !sequence.isDelivered(event.id)) await begin(event, cursor);
      else sequence.skip(cursor, event?.id);
      if (signal.aborted) break;
    }
  } finally {
    await Promise.all(lastOfKey.values());
  }
  failed.signal.throwIfAborted();
}
