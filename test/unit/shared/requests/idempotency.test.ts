import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import {
  claimRequest,
  type WaitingAttempt,
  contentHmac,
  idempotentRequestId,
} from '../../../../shared/requests/idempotency.ts';
import type { HandleContext } from '../../../../shared/commandHandling/handle.ts';
import { Rejection } from '../../../../shared/domain/rejection.ts';
import { storeUnavailableError, TurnlogError } from '../../../../shared/lib/errors/turnlogError.ts';
import { createDamagedStreams } from '../../../../shared/eventlog/reading/damagedStreams.ts';
import type { ProtectedStore } from '../../../../shared/eventlog/encryption/protectedStore.ts';
import { requestStream } from '../../../../shared/eventlog/streams.ts';
import { lagging } from '../../../support/fakes/laggingStore.ts';
import {
  eventStoreFixture,
  type SqliteEventStoreFixture,
} from '../../../support/stores/sqlite/sqliteEventStore.ts';

const actor = { account_id: 'acct_1', key_id: 'key_1', request_id: 'request_1' };
const request_id = 'ab'.repeat(32);

let fixture: SqliteEventStoreFixture;
let asked: number;

beforeEach(async () => {
  fixture = await eventStoreFixture();
  asked = 0;
});
afterEach(() => fixture.dispose());

const contextOn = (store: ProtectedStore): HandleContext => ({
  store,
  damaged: createDamagedStreams(() => undefined),
  clock: { now: () => Date.UTC(2026, 10, 22) },
  ids: { uuid: randomUUID, typeId: (prefix) => prefix },
});

const waiting: WaitingAttempt = {
  acquire: () => new DisposableStack(),
  requireClient: () => undefined,
};

/** Each try would reserve an id of its own. */
const claim = (store = fixture.store(), content_hmac = 'one', ofWaiting = waiting) =>
  claimRequest(contextOn(store), actor, {
    request_id,
    operation: 'createAgent',
    content_hmac,
    waiting: ofWaiting,
    reserve: async () => ({ reserved: { id: `agent_${(asked += 1)}` }, prepared: asked }),
  });

const events = () =>
  fixture.store().readStream(requestStream(request_id), { direction: 'forwards', limit: 10 });

describe('a claim', () => {
  test('gives later tries what the first reserved, and reserves nothing more', async () => {
    const first = await claim();
    const later = { request_id, reserved: { id: 'agent_1' }, isFirstAttempt: false };
    expect(first).toEqual({ ...later, isFirstAttempt: true, prepared: 1 });
    expect(await claim()).toEqual(later);
    expect(asked).toBe(1);
    expect(await events()).toHaveLength(1);
  });

  test('of many at once has one first, and one reservation for all', async () => {
    const claims = await Promise.all(Array.from({ length: 20 }, () => claim()));
    expect(claims.filter(({ isFirstAttempt }) => isFirstAttempt)).toHaveLength(1);
    expect(new Set(claims.map(({ reserved }) => reserved.id)).size).toBe(1);
    expect(asked).toBe(1);
    expect(await events()).toHaveLength(1);
  });

  test('is refused with another body, and adds nothing', async () => {
    await claim();
    await expect(claim(fixture.store(), 'two')).rejects.toMatchObject({ code: 'request_differs' });
    expect(await events()).toHaveLength(1);
  });

  test('finds the first one on a node that does not show it yet', async () => {
    const { reserved } = await claim();
    expect(await claim(lagging(fixture.store(), -1, 200))).toEqual({
      request_id,
      reserved,
      isFirstAttempt: false,
    });
  });

  test('whose append was written and not answered is found by the next try', async () => {
    const store = fixture.store();
    const lossy: ProtectedStore = {
      ...store,
      async append(...given) {
        await store.append(...given);
        throw storeUnavailableError('The connection broke.');
      },
    };
    await expect(claim(lossy)).rejects.toMatchObject({ code: 'store_unavailable' });
    expect(await claim()).toMatchObject({ reserved: { id: 'agent_1' }, isFirstAttempt: false });
  });

  test('records no HMAC that the key of the client alone makes', async () => {
    await claim();
    const [begun] = await events();
    const { body_hmac } = JSON.parse(begun!.data) as { body_hmac: string };
    expect(body_hmac).toMatch(/^[0-9a-f]{64}$/);
    await expect(claim(fixture.store(), 'another')).rejects.toThrow(Rejection);
  });

  test('waits for an earlier one with a permit, and continues in its turn', async () => {
    let [held, resumed] = [0, 0];
    const counting: WaitingAttempt = {
      acquire() {
        if (held === 2) throw new TurnlogError('rate_limited', 'Too many wait.');
        held += 1;
        const stack = new DisposableStack();
        stack.defer(() => (held -= 1));
        return stack;
      },
      requireClient() {
        resumed += 1;
        if (resumed === 2) throw new TurnlogError('overloaded', 'The client is gone.');
      },
    };
    const store = fixture.store();
    const results = await Promise.allSettled(
      Array.from({ length: 4 }, () => claim(store, 'one', counting)),
    );
    expect(results).toMatchObject([
      { value: { isFirstAttempt: true } },
      { value: { isFirstAttempt: false } },
      { reason: { code: 'overloaded' } },
      { reason: { code: 'rate_limited' } },
    ]);
    expect([held, resumed, asked]).toEqual([0, 2, 1]);
    await claim(store, 'one', counting);
    expect(resumed).toBe(2);
  });

  test('of what the operation refuses leaves nothing', async () => {
    const refused = claimRequest(contextOn(fixture.store()), actor, {
      request_id,
      operation: 'createAgent',
      content_hmac: 'one',
      waiting,
      reserve: async () => {
        throw new TurnlogError('model_not_supported', 'No.');
      },
    });
    await expect(refused).rejects.toMatchObject({ code: 'model_not_supported' });
    expect(await events()).toEqual([]);
  });
});

describe('the id of a request', () => {
  const request = { key: 'k', account_id: 'acct_1', method: 'POST', path: '/v1/agents' };

  test.each([{ key: 'l' }, { account_id: 'acct_2' }, { method: 'PUT' }, { path: '/v1/agents/x' }])(
    'is another one for %p',
    (changes) => {
      expect(idempotentRequestId({ ...request, ...changes })).not.toBe(
        idempotentRequestId(request),
      );
    },
  );

  test('is of a fixed size, and says nothing of the key', () => {
    expect(idempotentRequestId({ ...request, key: 'x'.repeat(255) })).toMatch(/^[0-9a-f]{64}$/);
  });

  test('goes with a content that is told by its key alone', () => {
    const content = { query: {}, body: { b: 1, a: 2 } };
    const hmac = contentHmac(request, content);
    expect(contentHmac(request, { body: { a: 2, b: 1 }, query: {} })).toBe(hmac);
    expect(contentHmac(request, { ...content, body: { b: 1, a: 3 } })).not.toBe(hmac);
    expect(contentHmac({ ...request, key: 'l' }, content)).not.toBe(hmac);
  });
});
