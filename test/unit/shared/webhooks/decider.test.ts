import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  holdsWebhookState,
  webhook,
  type WebhookCommand,
} from '../../../../shared/webhooks/decider.ts';
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
      .then(webhookChanged({ url: other, types }, true));
    given(created)
      .when(change({ types: null }))
      .then(webhookChanged({}, true));
    given(created)
      .when(change({ url: webhookSettings().url, types, enabled: true }))
      .then();
    given(created).when(change({})).then();
  });

  test('is disabled and enabled, whoever did the other', () => {
    const created = webhookCreated();
    given(created)
      .when(change({ enabled: false }))
      .then(webhookDisabled('request', webhookSettings()));
    given(created, webhookDisabled('gone'))
      .when(change({ url: other, enabled: true }))
      .then(webhookChanged({ url: other }, false), webhookEnabled({ url: other }));
  });

  test('is given up unless it is disabled or deleted', () => {
    const giveUp: WebhookCommand = { type: 'disable_webhook', reason: 'failing' };
    given(webhookCreated()).when(giveUp).then(webhookDisabled('failing', webhookSettings()));
    given(webhookCreated(), webhookChanged({ url: other }))
      .when(giveUp)
      .then(webhookDisabled('failing', webhookSettings({ url: other })));
    given(webhookCreated(), webhookDisabled('request')).when(giveUp).then();
    given(webhookCreated(), webhookDeleted()).when(giveUp).then();
  });

  test('has its whole state in each event, except in some of early releases', () => {
    const recorded = fc.array(
      fc.record({
        url: fc.constantFrom(other, webhookSettings().url),
        types: fc.constantFrom(types, null),
        enabled: fc.boolean(),
      }),
    );
    fc.assert(
      fc.property(recorded, (changes) => {
        let events = [webhookCreated({ types })];
        for (const wanted of changes) {
          const state = replay(webhook, events);
          events = [...events, ...webhook.decide(change(wanted), state)];
          const last = events.at(-1)!;
          expect(holdsWebhookState(last)).toBe(true);
          expect(replay(webhook, [last])).toEqual(replay(webhook, events));
        }
      }),
    );
    for (const early of [webhookChanged(), webhookEnabled(), webhookDisabled('gone')])
      expect(holdsWebhookState(early)).toBe(false);
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
