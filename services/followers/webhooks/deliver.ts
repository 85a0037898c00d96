import { LIMITS } from '../../../shared/limits.ts';
import { isoTime } from '../../../shared/ports/clock.ts';
import type { WebhookProgress } from '../../../shared/webhooks/webhookProgress.ts';
import type { PublicEvent } from '../../../shared/publicEvents/publicEvent.ts';
import { NotTaken, type Lane } from './lane.ts';
import { createProgressWindow } from './progressWindow.ts';

/** Whoever waits in the line is let in or stopped; the wait itself has no other end. */
const WAIT_MS = 2 ** 31 - 1;

/** What is well again once a message was taken. */
const wellAgain = ({
  failing_since: _since,
  failing_ms: _ms,
  ...progress
}: WebhookProgress): WebhookProgress => progress;

/**
 * Sends what follows the cursor until the lane's signal: the events of a key one after the
 * other, those of several keys side by side; only one at a time until one was taken where `probes`
 * says so. The first failure begins nothing more, and what is on its way ends.
 * Errors: NotTaken, those of FollowAccount and of the texts.
 */
export async function deliver(lane: Lane, probes: boolean): Promise<void> {
  const { row, clock, taken } = lane;
  const texts = await lane.textsOf(row);
  const failed = new AbortController();
  const signal = AbortSignal.any([lane.signal, failed.signal]);
  const chains = new Map<string, Promise<void>>();
  let onTheWay = 0;
  let most: number = probes ? 1 : LIMITS.webhooks.ahead;

  const isFull = (): boolean => onTheWay >= most;
  const say = (change: Partial<WebhookProgress>): void => {
    const { oldest_at: _, ...progress } = { ...lane.progress(), ...change };
    const oldest_at = window.oldest();
    lane.onProgress({ ...progress, ...(oldest_at !== undefined && { oldest_at }) });
  };
  const window = createProgressWindow((cursor, ids) => {
    if (ids.length > 0) lane.onProgress(wellAgain(lane.progress()));
    say({ cursor, ...(ids.length > 0 && { delivered_at: isoTime(clock.now()) }) });
    // What lies before the cursor never comes again.
    for (const id of ids) taken.delete(id);
  });

  async function send({ id }: PublicEvent, body: string): Promise<void> {
    signal.throwIfAborted();
    const outcome = await lane.send({ ...texts, id, body, signal: lane.cut });
    if (!outcome.taken) throw new NotTaken(outcome);
    most = LIMITS.webhooks.ahead;
  }

  async function begin(event: PublicEvent, cursor: string): Promise<void> {
    while (isFull()) await Promise.race(chains.values());
    const body = lane.bodyOf(event);
    const asked = { account_id: row.account_id, bytes: Buffer.byteLength(body) };
    const place = await lane.line.acquire(asked, { waitMs: WAIT_MS, signal });
    const done = window.begin(cursor, event);
    onTheWay += 1;
    const before = chains.get(event.key);
    const work = async (): Promise<void> => {
      try {
        await before;
        await send(event, body);
        taken.add(event.id);
        done();
      } catch (error) {
        failed.abort(error);
      } finally {
        onTheWay -= 1;
        place.release();
        if (chains.get(event.key) === chain) chains.delete(event.key);
      }
    };
    const chain = work();
    chains.set(event.key, chain);
    say({});
  }

  try {
    const { account_id: accountId, position, types } = row;
    const from = { accountId, position, types, cursor: lane.progress().cursor };
    for await (const { event, cursor } of lane.follow({ ...from, signal })) {
      lane.onTrouble(undefined);
      if (event && !taken.has(event.id)) await begin(event, cursor);
      else window.pass(cursor, event?.id);
      if (signal.aborted) break;
    }
  } finally {
    await Promise.all(chains.values());
  }
  failed.signal.throwIfAborted();
}
