import { describe, expect, test } from '@jest/globals';
import { webhook, type WebhookCommand } from '../../../../shared/webhooks/decider.ts';
import { replay, specification } from '../../../support/builders/deciderSpecification.ts';
import {
  webhookChanged,
  webhookCreated,
  webhookDeleted,
  webhookDisabled,
  webhookEnabled,
  webhookErased,
  webhookSettings,
} from '../../../support/builders/events.ts';

const given = specification(webhook);
const types = ['turnlog.session.turn_completed.v1'];
const other = 'https://example.com/other';
const change = (wanted: object): WebhookCommand => ({ type: 'change_webhook', change: wanted });

describe('a webhook', () => {
  test('is created once', () => {
    const create = {
      type: 'create_webhook',
      settings: webhookSettings(),
      secret: 'whsec_c2VjcmV0',
    } as const;
    given().when(create).then(webhookCreated());
    given(webhookCreated()).when(create).thenRejected('webhook_exists');
    given(webhookCreated(), webhookDeleted()).when(create).thenRejected('webhook_exists');
  });

  test('keeps what a change does not name, and a change that changes nothing is none', () => {
    const created = webhookCreated({ types });
    given(created)
      .when(change({ url: other }))
      .then(webhookChanged({ url: other, types }));
    given(created)
      .when(change({ types: null }))
      .then(webhookChanged());
    given(created)
      .when(change({ url: webhookSettings().url, types, enabled: true }))
      .then();
    given(created).when(change({})).then();
  });

  test('is disabled and enabled, whoever did the other', () => {
    const created = webhookCreated();
    given(created)
      .when(change({ enabled: false }))
      .then(webhookDisabled('request'));
    given(created, webhookDisabled('gone'))
      .when(change({ url: other, enabled: true }))
      .then(webhookChanged({ url: other }), webhookEnabled());
  });

  test('that was changed since it was tried is not given up', () => {
    const giveUp = (at: number): WebhookCommand => ({
      type: 'disable_webhook',
      reason: 'failing',
      at,
    });
    given(webhookCreated()).when(giveUp(0)).then(webhookDisabled('failing'));
    given(webhookCreated(), webhookChanged({ url: other }))
      .when(giveUp(0))
      .then();
    given(webhookCreated(), webhookChanged({ url: other }))
      .when(giveUp(1))
      .then(webhookDisabled('failing'));
    given(webhookCreated(), webhookDisabled('request')).when(giveUp(1)).then();
    given(webhookCreated(), webhookDeleted()).when(giveUp(1)).then();
  });

  test('is deleted once, and nothing is changed of it then', () => {
    given(webhookCreated()).when({ type: 'delete_webhook' }).then(webhookDeleted());
    for (const command of [{ type: 'delete_webhook' } as const, change({ enabled: true })]) {
      given(webhookCreated(), webhookDeleted()).when(command).thenRejected('webhook_missing');
      given().when(command).thenRejected('webhook_missing');
    }
  });

  test('is erased once, deleted or not', () => {
    const erase: WebhookCommand = {
      type: 'erase_webhook',
      reason: 'account',
      key_ids: ['k'],
    };
    const erased = webhookErased({ key_ids: ['k'] });
    given().when(erase).thenRejected('webhook_missing');
    given(webhookCreated()).when(erase).then(erased);
    given(webhookCreated(), webhookDeleted()).when(erase).then(erased);
    given(webhookCreated(), erased).when(erase).then();
    expect(replay(webhook, [webhookCreated(), erased])).toEqual({ status: 'erased' });
  });
});
