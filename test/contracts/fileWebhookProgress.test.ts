import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, jest, test } from '@jest/globals';
import { LIMITS } from '../../shared/limits.ts';
import { openFileWebhookProgress } from '../../infra/files/webhookProgress.ts';
import { temporaryFolder } from '../support/stores/sqlite/sqliteEventStore.ts';
import { webhookProgressContract } from './webhookProgress.ts';

webhookProgressContract('a file', async () => {
  const folder = await temporaryFolder();
  const path = join(folder, 'webhook-progress');
  let opened = openFileWebhookProgress(path);
  return {
    store: async () => (opened = openFileWebhookProgress(path)),
    reader: () => opened,
    dispose: () => rm(folder, { recursive: true }),
  };
});

test('a file that is no JSON any more is an empty one: all is sent again', async () => {
  const folder = await temporaryFolder();
  const path = join(folder, 'webhook-progress');
  await writeFile(path, '[["webhook_1",{"revis');
  expect(await openFileWebhookProgress(path).load()).toEqual(new Map());
  await rm(folder, { recursive: true });
});

test('the progress of many webhooks is written in steps, with fewer attempts of each', async () => {
  const folder = await temporaryFolder();
  const store = openFileWebhookProgress(join(folder, 'webhook-progress'));
  const attempt = {
    at: '2026-01-01T00:00:00.000Z',
    message_id: 'message',
    type: 'turnlog.x',
    status: 204,
    error: null,
    duration_ms: 1,
  };
  const count = LIMITS.webhooks.enabled;
  const attempts = Array.from({ length: LIMITS.webhooks.attempts }, () => attempt);
  const progress = { revision: 0, cursor: 'c', attempts };
  await store.load();
  // The characters of JSON that each step of the event loop writes.
  const written: number[] = [0];
  let isSaved = false;
  const beginStep = (): void => {
    if (written.at(-1) !== 0) written.push(0);
    if (!isSaved) setImmediate(beginStep);
  };
  setImmediate(beginStep);
  const stringify = JSON.stringify.bind(JSON) as (value: unknown) => string;
  const spy = jest.spyOn(JSON, 'stringify').mockImplementation((value: unknown) => {
    const text = stringify(value);
    written[written.length - 1]! += text.length;
    return text;
  });
  await store.save(new Map(Array.from({ length: count }, (_, at) => [`webhook_${at}`, progress])));
  isSaved = true;
  spy.mockRestore();
  const total = written.reduce((sum, chars) => sum + chars, 0);
  expect(total).toBeGreaterThan(1_000_000);
  expect(Math.max(...written)).toBeLessThan(total / 20);
  const loaded = await openFileWebhookProgress(join(folder, 'webhook-progress')).load();
  expect(loaded.size).toBe(count);
  const kept = attempts.slice(0, LIMITS.webhooks.attemptsInFile / count);
  expect(loaded.get('webhook_7')).toEqual({ ...progress, attempts: kept });
  await rm(folder, { recursive: true });
});
