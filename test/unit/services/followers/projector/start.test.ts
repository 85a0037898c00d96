import { once } from 'node:events';
import { expect, test } from '@jest/globals';
import { startProjector } from '../../../../../services/followers/projector/start.ts';
import { storeUnavailableError } from '../../../../../shared/lib/errors/turnlogError.ts';
import type { EventBatch, SubscribeOptions } from '../../../../../shared/ports/eventStore.ts';
import type { ActiveProjectionStore } from '../../../../../shared/ports/readModels.ts';
import { eventually } from '../../../../support/processes/operator.ts';
import { recordingLogger } from '../../../../support/stores/projections/projector.ts';
import { memoryKeys } from '../../../../support/fakes/memoryKeys.ts';

test('the health of a projector says why turns can not be indexed, until they can', async () => {
  let isAway = true;
  const store: Partial<ActiveProjectionStore> = {
    lost: new AbortController().signal,
    checkpoint: async () => undefined,
    refused: async () => undefined,
    beat: async () => undefined,
    complete: async () => undefined,
    noteLogChanged: async () => undefined,
    close: async () => undefined,
    async unindexed() {
      if (isAway) throw storeUnavailableError('The key store does not answer');
      return [];
    },
  };
  const projector = startProjector({
    log: {
      head: async () => undefined,
      async *subscribe({ signal }: SubscribeOptions): AsyncGenerator<EventBatch> {
        yield { events: [], position: undefined, checkpoint: undefined, caughtUp: true };
        if (!signal.aborted) await once(signal, 'abort');
      },
    },
    acquireLeadership: async () => store as ActiveProjectionStore,
    openRebuild: async () => Promise.reject(new Error('There is nothing to rebuild.')),
    clock: { now: Date.now },
    logger: recordingLogger().logger,
    keys: memoryKeys().keys,
  });
  const healthOnce = (isFailing: boolean) =>
    eventually(
      async () => projector.health(),
      ({ search_reason }) => (search_reason !== undefined) === isFailing,
    );
  expect(await healthOnce(true)).toMatchObject({
    state: 'active',
    search_reason:
      "Turns can't be indexed, and are not found by their words: The key store does not answer.",
  });
  isAway = false;
  expect(await healthOnce(false)).not.toHaveProperty('search_reason');
  await projector.close();
});
