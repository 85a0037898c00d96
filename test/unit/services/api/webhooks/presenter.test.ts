import { expect, test } from '@jest/globals';
import { presentWebhook } from '../../../../../services/api/webhooks/presenter.ts';
import type { WebhookProgress } from '../../../../../shared/webhooks/webhookProgress.ts';
import type { WebhookRow } from '../../../../../shared/readModels/tables.ts';

const row = { webhook_id: 'webhook_1', types: null, disabled: null, revision: 0 } as WebhookRow;
const now = Date.parse('2026-11-23T09:00:31.410Z');
const lagWith = (progress: WebhookProgress | undefined) =>
  presentWebhook({ row, url: 'https://example.com', progress }, now).lag_ms;

test('a webhook is behind by its oldest event that waits, by nothing where none does, and nobody knows before that is kept', () => {
  expect(lagWith({ revision: 0, oldest_at: '2026-11-23T09:00:00.000Z' })).toBe(31_410);
  expect(lagWith({ revision: 0, cursor: 'c' })).toBe(0);
  expect(lagWith(undefined)).toBeNull();
});
