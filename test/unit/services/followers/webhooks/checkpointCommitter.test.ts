import { expect, test } from '@jest/globals';
import { loadCheckpoints } from '../../../../../services/followers/webhooks/checkpointCommitter.ts';
import type { WebhookChanges } from '../../../../../shared/webhooks/webhookProgress.ts';

test('progress that could not be saved is saved by the next commit, as it is then', async () => {
  const saves: WebhookChanges[] = [];
  let isAway = true;
  const checkpoints = await loadCheckpoints({
    load: async () => new Map([['gone', { revision: 0 }]]),
    async save(changes) {
      saves.push(changes);
      if (isAway) throw new Error('away');
    },
  } as Parameters<typeof loadCheckpoints>[0]);
  checkpoints.set('gone', undefined);
  checkpoints.set('kept', { revision: 1 });
  await expect(checkpoints.commit()).rejects.toThrow('away');
  checkpoints.set('kept', { revision: 2 });
  isAway = false;
  await checkpoints.commit();
  await checkpoints.commit();
  expect(saves.slice(1)).toEqual([
    new Map([
      ['gone', undefined],
      ['kept', { revision: 2 }],
    ]),
  ]);
});
