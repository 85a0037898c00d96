import { describe, expect, test } from '@jest/globals';
import type { StoredEvent } from '../../shared/ports/eventStore.ts';
import {
  webhookChanged,
  webhookCreated,
  webhookDeleted,
  webhookDisabled,
  webhookEnabled,
  webhookErased,
} from '../support/builders/events.ts';
import { ALL } from '../support/stores/projections/agentsOf.ts';
import { freshReadModels } from './freshReadModels.ts';
import type { ReadModelsFixture } from './readModels.ts';

/** What the read models say of webhooks: a part of the suite of their port. */
export function webhooksContract(name: string, open: () => Promise<ReadModelsFixture>): void {
  describe(`${name}: webhooks`, () => {
    const fresh = freshReadModels(open);
    const { apply } = fresh;

    const record = (
      id: string,
      event: Parameters<typeof fresh.record>[1],
      account = 'acct_1',
    ): StoredEvent => fresh.record({ stream: `webhook-${id}`, account }, event);
    const listed = async (account: string, page: { deleted?: true; after?: string } = {}) =>
      (await fresh.readModels.listWebhooks(account, { ...ALL, ...page })).rows.map(
        ({ webhook_id }) => webhook_id,
      );
    const enabled = async (limit = 10, after = '') =>
      (await fresh.readModels.listEnabledWebhooks(after, limit)).rows.map(
        ({ webhook_id }) => webhook_id,
      );

    test('are found as their last event left them', async () => {
      const types = ['turnlog.session.turn_completed.v1'];
      const created = record('webhook_1', webhookCreated({ types }));
      await apply(created);
      expect(await fresh.readModels.findWebhook('webhook_1')).toMatchObject({
        account_id: 'acct_1',
        url: 'https://example.com/turnlog',
        secret: 'whsec_c2VjcmV0',
        types,
        disabled: null,
        position: created.position,
        deleted: false,
        revision: 0,
      });
      await apply(record('webhook_1', webhookChanged()), record('webhook_1', webhookDisabled()));
      expect(await fresh.readModels.findWebhook('webhook_1')).toMatchObject({
        types: null,
        disabled: 'failing',
        position: created.position,
        revision: 2,
      });
      expect(await fresh.readModels.findWebhook('webhook_2')).toBeUndefined();
    });

    test('are listed by account, deleted ones where they are asked for, erased ones never', async () => {
      await apply(
        record('webhook_1', webhookCreated()),
        record('webhook_2', webhookCreated()),
        record('webhook_3', webhookCreated()),
        record('webhook_4', webhookCreated(), 'acct_2'),
        record('webhook_2', webhookDeleted()),
        record('webhook_3', webhookErased()),
      );
      expect(await listed('acct_1')).toEqual(['webhook_1']);
      expect(await listed('acct_1', { deleted: true })).toEqual(['webhook_1', 'webhook_2']);
      expect(await listed('acct_1', { deleted: true, after: 'webhook_1' })).toEqual(['webhook_2']);
      expect(await fresh.readModels.findWebhook('webhook_3')).toMatchObject({
        url: '',
        secret: '',
        erased: true,
      });
    });

    test('are sent to while they are enabled, those of all accounts', async () => {
      await apply(
        record('webhook_1', webhookCreated()),
        record('webhook_2', webhookCreated(), 'acct_2'),
        record('webhook_3', webhookCreated()),
        record('webhook_1', webhookDisabled('request')),
        record('webhook_3', webhookDeleted()),
      );
      expect(await enabled()).toEqual(['webhook_2']);
      await apply(record('webhook_1', webhookEnabled()));
      expect(await enabled()).toEqual(['webhook_1', 'webhook_2']);
      expect(await enabled(1)).toEqual(['webhook_1']);
    });
  });
}
