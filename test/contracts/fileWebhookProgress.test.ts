import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
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
