import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type {
  WebhookProgress,
  WebhookProgressReader,
  WebhookProgressStore,
} from '../../shared/webhooks/webhookProgress.ts';

export interface WebhookProgressFixture {
  /** Of a process that begins anew on the same data. */
  store(): Promise<WebhookProgressStore>;
  reader(): WebhookProgressReader;
  dispose(): Promise<void>;
}

const AT = '2026-01-01T00:00:00.000Z';
const progress = (changes: Partial<WebhookProgress> = {}): WebhookProgress => ({
  cursor: '0000000000000007.abcdefghijklmnopqrstuvwx',
  delivered_at: AT,
  revision: 3,
  ...changes,
});

/** What every adapter of the port WebhookProgressStore has to do. */
export function webhookProgressContract(
  name: string,
  open: () => Promise<WebhookProgressFixture>,
): void {
  describe(`the progress of webhooks in ${name}`, () => {
    let fixture: WebhookProgressFixture;
    beforeEach(async () => {
      fixture = await open();
    });
    afterEach(() => fixture.dispose());

    test('is empty at first, and nothing is found', async () => {
      expect(await fixture.reader().find('webhook_1')).toBeUndefined();
      expect(await (await fixture.store()).load()).toEqual(new Map());
    });

    test('is there again for the next process, as it was saved last', async () => {
      const first = await fixture.store();
      const failing = progress({
        failing_since: AT,
        failing_ms: 12,
        last_error: { message: 'The receiver “é” answered 500.', at: AT },
        oldest_at: AT,
        attempts: [
          { at: AT, message_id: 'e1', type: 't', status: 500, error: 'It failed.', duration_ms: 3 },
          { at: AT, message_id: 'e1', type: 't', status: null, error: 'é', duration_ms: 10_000 },
        ],
      });
      await first.save(
        new Map([
          ['webhook_1', progress()],
          ['webhook_2', progress()],
        ]),
      );
      await first.save(new Map([['webhook_2', failing]]));
      expect(await fixture.reader().find('webhook_2')).toEqual(failing);
      const next = await fixture.store();
      expect(await next.load()).toEqual(
        new Map([
          ['webhook_1', progress()],
          ['webhook_2', failing],
        ]),
      );
    });

    test('of what is deleted is kept no more', async () => {
      const store = await fixture.store();
      await store.save(
        new Map([
          ['webhook_1', progress()],
          ['webhook_2', progress()],
        ]),
      );
      await store.save(
        new Map([
          ['webhook_1', undefined],
          ['webhook_0', undefined],
        ]),
      );
      expect(await fixture.reader().find('webhook_1')).toBeUndefined();
      expect([...(await (await fixture.store()).load()).keys()]).toEqual(['webhook_2']);
    });
  });
}
