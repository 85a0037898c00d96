import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { openFileReplayAttempts } from '../../infra/files/replayAttempts.ts';
import { temporaryFolder } from '../support/stores/sqlite/sqliteEventStore.ts';
import { replayAttemptsContract } from './replayAttempts.ts';

replayAttemptsContract('a folder', async () => {
  const folder = await temporaryFolder();
  return {
    open: () => openFileReplayAttempts(join(folder, 'replay-attempts')),
    dispose: () => rm(folder, { recursive: true }),
  };
});

test('no attempt begins while it can not be recorded', async () => {
  const folder = await temporaryFolder();
  const path = join(folder, 'replay-attempts');
  await writeFile(path, '');
  const turn = { replay_id: 'replay_1', session_id: 'session_1', turn: 1 };
  await expect(openFileReplayAttempts(path).begin(turn)).rejects.toMatchObject({
    code: 'store_unavailable',
    retriable: true,
  });
  await rm(folder, { recursive: true });
});
