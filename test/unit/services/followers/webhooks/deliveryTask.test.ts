import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { runDeliveryTask } from '../../../../../services/followers/webhooks/deliveryTask.ts';
import type { Delivery } from '../../../../../services/followers/webhooks/delivery.ts';
import { createFairSemaphore } from '../../../../../shared/lib/concurrency/fairSemaphore.ts';
import { TurnlogError } from '../../../../../shared/lib/errors/turnlogError.ts';
import { LIMITS } from '../../../../../shared/limits.ts';
import { sleepUntilAborted } from '../../../../../shared/lib/time/sleep.ts';
import type { Position } from '../../../../../shared/ports/eventStore.ts';
import type { WebhookProgress } from '../../../../../shared/webhooks/webhookProgress.ts';
import type { DeliveryOutcome } from '../../../../../shared/webhooks/webhookSender.ts';
import type { PublicEvent } from '../../../../../shared/publicEvents/publicEvent.ts';
import type { WebhookRow } from '../../../../../shared/readModels/tables.ts';
import { eventually } from '../../../../support/processes/operator.ts';
import { isFreed } from '../../../../support/jest/garbage.ts';
import { skipPauses } from '../../../../support/fakes/jumpingClock.ts';

skipPauses();

const AT = '2026-01-01T00:00:00.000Z';
const row = {
  webhook_id: 'webhook_1',
  account_id: 'acct_1',
  position: '0' as Position,
  types: null,
  revision: 0,
} as WebhookRow;

let stopping: AbortController;
let running: Promise<void> | undefined;
let progress: WebhookProgress;
/** The keys of the account's events, in the order of the log; an id is key and place. */
let log: string[];
/** The outcomes of each message, by its id; accepted without one here. */
let answers: Record<string, DeliveryOutcome[]>;
let tried: string[];
/** The bodies of the messages that were tried. */
let bodies: string[];
/** The keys whose streams are erased. */
let erased: Set<string>;
/** Called after a check whether a stream is erased. */
let onChecked: (stream: string) => void;
let bodyEnd: string;
let onSend: () => Promise<unknown>;
let under: Set<string>;
let mostUnder: number;
let retained: number;
let latest: WeakRef<PublicEvent>;
let followed: (string | undefined)[];
let disabled: string[];
let troubles: (string | undefined)[];
let followFails: unknown[];
/** Feeds that are being followed. */
let following: number;

beforeEach(() => {
  stopping = new AbortController();
  progress = { revision: 0 };
  [log, tried, followed, disabled, troubles, followFails] = [[], [], [], [], [], []];
  [bodies, erased, onSend] = [[], new Set(), () => Promise.resolve()];
  [onChecked, bodyEnd] = [() => undefined, ''];
  [answers, under, mostUnder, retained, following] = [{}, new Set(), 0, 0, 0];
});
afterEach(async () => {
  stopping.abort();
  await running;
  // Delivered, refused or never sent, a message leaves no memory reserved.
  expect(retained).toBe(0);
  // A feed that is not ended holds the memory of its page.
  expect(following).toBe(0);
});

const refused = (more: object = {}): DeliveryOutcome => ({
  accepted: false,
  reason: 'No.',
  ...more,
});
const idAt = (index: number): string => `${log[index]}${index}`;

function eventOf(at: number, key: string): PublicEvent {
  const event = { id: idAt(at), key, type: `turnlog.${key}`, time: AT } as PublicEvent;
  latest = new WeakRef(event);
  return event;
}

/** Counts the messages whose memory is held. */
function retain(): () => void {
  retained += 1;
  return () => (retained -= 1);
}

async function* follow({ cursor, signal }: Parameters<Delivery['follow']>[0]) {
  followed.push(cursor);
  if (followFails.length > 0) throw followFails.shift();
  following += 1;
  try {
    for (let at = cursor === undefined ? 0 : Number(cursor) + 1; !signal.aborted;) {
      const key = log[at];
      if (key === undefined) {
        await sleepUntilAborted(5, { signal });
        continue;
      }
      const textStream = erased.has(key) ? {} : { textStream: key };
      yield { cursor: String(at), event: eventOf(at, key), retain, ...textStream };
      at += 1;
    }
  } finally {
    following -= 1;
  }
}

function start(): void {
  const delivery: Delivery = {
    row,
    follow,
    async send({ id, body }) {
      tried.push(id);
      bodies.push(body);
      await onSend();
      expect([...under].filter((other) => other[0] === id[0])).toEqual([]);
      under.add(id);
      mostUnder = Math.max(mostUnder, under.size);
      expect(retained).toBeGreaterThanOrEqual(under.size);
      await sleepUntilAborted(10, { signal: stopping.signal });
      under.delete(id);
      return answers[id]?.shift() ?? { accepted: true, status: 204 };
    },
    bodyOf: ({ id, key }) => (erased.has(key) ? id : `${id} with texts${bodyEnd}`),
    isErased(stream) {
      const isErased = erased.has(stream);
      onChecked(stream);
      return isErased;
    },
    semaphore: createFairSemaphore('test', { permits: 100, bytes: 1_000 }),
    textsOf: async () => ({ url: 'https://example.com', secret: 'whsec_' }),
    disable: async (_row, reason) => void disabled.push(reason),
    clock: { now: () => Date.parse(AT) },
    logger: { info: () => {}, warn: () => {}, error: () => {} },
    progress: () => progress,
    onProgress: (now) => void (progress = now),
    onTrouble: (reason) => void troubles.push(reason),
    stopIfChanged: async () => undefined,
    signal: stopping.signal,
    cutOff: stopping.signal,
  };
  running = runDeliveryTask(delivery);
}

const reaches = (cursor: number) =>
  eventually(
    async () => progress,
    (now) => now.cursor === String(cursor),
  );

describe('a delivery task', () => {
  test('sends several keys side by side, each in order, and no more than so many', async () => {
    log = Array.from({ length: 60 }, (_, index) => 'abcdefghijklmnopqrstuvwxyz'[index % 26]!);
    start();
    await reaches(59);
    expect(tried.toSorted()).toEqual(log.map((_, index) => idAt(index)).toSorted());
    expect(mostUnder).toBeGreaterThan(4);
    expect(mostUnder).toBeLessThanOrEqual(LIMITS.webhooks.ahead);
    const { attempts, ...others } = progress;
    expect(others).toEqual({ cursor: '59', revision: 0, delivered_at: AT });
    expect(attempts).toHaveLength(LIMITS.webhooks.attempts);
  });

  test('keeps no event in memory while it waits for the next one', async () => {
    log = ['a', 'b'];
    start();
    await reaches(1);
    expect(await isFreed(latest)).toBe(true);
  });

  test('resumes with the message that was not accepted, alone, and sends no accepted message twice', async () => {
    log = ['a', 'b', 'a', 'c', 'a'];
    answers = { a0: [refused({ status: 503 }), refused()] };
    start();
    await reaches(4);
    expect(tried.filter((id) => id === 'a0')).toHaveLength(3);
    for (const id of ['b1', 'a2', 'c3', 'a4'])
      expect([id, tried.filter((other) => other === id).length]).toEqual([id, 1]);
    expect(tried.indexOf('a2')).toBeGreaterThan(tried.lastIndexOf('a0'));
    const { attempts = [], ...others } = progress;
    expect(others).toEqual({
      cursor: '4',
      revision: 0,
      delivered_at: AT,
      last_error: { message: 'No.', at: AT },
    });
    expect(attempts.map(({ message_id }) => message_id).toSorted()).toEqual(tried.toSorted());
    expect(attempts.filter(({ message_id }) => message_id === 'a0')).toMatchObject([
      { at: AT, type: 'turnlog.a', status: 503, error: 'No.' },
      { at: AT, type: 'turnlog.a', status: null, error: 'No.' },
      { at: AT, type: 'turnlog.a', status: 204, error: null },
    ]);
  });

  test('waits for nothing between the last check and the delivery of a large message', async () => {
    bodyEnd = 'x'.repeat(100_000);
    onChecked = (stream) => void setImmediate(() => erased.add(stream));
    const wereErased: boolean[] = [];
    onSend = async () => void wereErased.push(erased.has('a'));
    log = ['a'];
    start();
    await reaches(0);
    expect(wereErased).toEqual([false]);
  });

  test('reads a message again whose texts were erased while it waited', async () => {
    log = ['a', 'a', 'a'];
    onSend = async () => {
      if (tried.length > 1) return;
      await eventually(
        async () => retained,
        (begun) => begun === log.length,
      );
      erased.add('a');
    };
    start();
    await reaches(2);
    expect(bodies).toEqual(['a0 with texts', 'a1', 'a2']);
    expect([progress.failing_since, progress.last_error]).toEqual([undefined, undefined]);
    expect(troubles.filter((trouble) => trouble !== undefined)).toEqual([]);
  });

  test('that fails says since when, and what waits', async () => {
    log = ['a'];
    answers = { a0: Array.from({ length: 9 }, () => refused()) };
    start();
    await eventually(
      async () => progress,
      ({ failing_ms = 0 }) => failing_ms > 0,
    );
    expect(progress).toMatchObject({ failing_since: AT, oldest_at: AT });
    expect(disabled).toEqual([]);
  });

  test('disables the webhook after a day of tries, also where another process began it', async () => {
    log = ['a'];
    answers = { a0: Array.from({ length: 9 }, () => refused()) };
    progress = { revision: 0, failing_since: AT, failing_ms: LIMITS.webhooks.failingMs };
    start();
    await eventually(
      async () => disabled,
      (reasons) => reasons.length > 0,
    );
    expect(disabled[0]).toBe('failing');
  });

  test('does not disable it for the time in which something of ours was away', async () => {
    log = ['a'];
    answers = { a0: Array.from({ length: 9 }, () => refused()) };
    const now = performance.now.bind(performance);
    let aheadMs = 0;
    const clock = jest.spyOn(performance, 'now').mockImplementation(() => now() + aheadMs);
    start();
    await eventually(
      async () => tried,
      ({ length }) => length === 1,
    );
    await eventually(
      async () => progress,
      ({ failing_since }) => failing_since !== undefined,
    );
    aheadMs = 2 * LIMITS.webhooks.failingMs;
    await eventually(
      async () => progress,
      ({ failing_ms = 0 }) => failing_ms > 0,
    );
    clock.mockRestore();
    expect(progress.failing_ms).toBeLessThan(LIMITS.webhooks.answerMs + 1_000);
    expect(disabled).toEqual([]);
  });

  test('disables the webhook at once where the receiver is gone', async () => {
    log = ['a'];
    answers = { a0: [refused({ gone: true })] };
    start();
    await eventually(
      async () => disabled,
      (reasons) => reasons.length > 0,
    );
    expect(disabled).toEqual(['gone']);
  });

  test('leaves a receiver alone for as long as it asks', async () => {
    log = ['a'];
    answers = { a0: [refused({ retryAfterMs: 900 })] };
    const begun = performance.now();
    start();
    await reaches(0);
    expect(performance.now() - begun).toBeGreaterThan(850);
  });

  test('has forgotten the trouble of long ago', async () => {
    log = ['a'];
    followFails = Array.from({ length: 7 }, () => new TurnlogError('store_unavailable', 'Away.'));
    const now = performance.now.bind(performance);
    const clock = jest
      .spyOn(performance, 'now')
      .mockImplementation(() => now() + followed.length * 120_000);
    const began = now();
    start();
    await eventually(
      async () => progress,
      ({ cursor }) => cursor === '0',
    );
    clock.mockRestore();
    expect(now() - began).toBeLessThan(10_000);
  });

  test('begins anew where a restored log has lost what was sent last', async () => {
    log = ['a', 'b'];
    progress = { revision: 0, cursor: '7' };
    followFails = [new TurnlogError('position_unknown', 'Unknown.')];
    start();
    await reaches(1);
    expect(followed.slice(0, 2)).toEqual(['7', undefined]);
    expect(tried).toEqual(['a0', 'b1']);
  });

  test('of a log that was changed sends nothing, and says so until it is right again', async () => {
    log = ['a', 'b'];
    progress = { revision: 0, cursor: '0' };
    followFails = [new TurnlogError('log_changed', 'It has changed.')];
    start();
    await reaches(1);
    expect(troubles[0]).toBe('It has changed.');
    expect(troubles.at(-1)).toBeUndefined();
    expect([followed, tried]).toEqual([['0', '0'], ['b1']]);
    expect(progress.failing_since).toBeUndefined();
  });
});
