import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { bootstrap } from '../../../services/server/lifecycle.ts';
import type { CommandContext } from '../../../shared/commands/context.ts';
import { TurnlogError } from '../../../shared/errors.ts';
import type { Position } from '../../../shared/ports/eventStore.ts';
import { positionOf } from '../../support/events/history.ts';

const END = positionOf(2);

/** A replica that finds no key in its read models, and the account opened by another one when it opens it itself. */
function lateReplica(waitUntilPassed: (position: Position) => Promise<boolean>): CommandContext {
  const context = {
    store: {
      readStream: async () => [],
      append: () =>
        Promise.reject(new TurnlogError('invalid_request', 'another replica came first')),
      // Longer than an estimate waits for it.
      head: () => sleep(200, END),
    },
    readModels: {
      hasApiKeys: async () => false,
      listParkedStreams: async () => [],
      waitUntilPassed,
    },
    clock: { now: () => 0 },
    ids: { uuid: () => 'id', typeId: (prefix: string) => `${prefix}_1` },
    visibilityWaitMs: 10,
  };
  return context as unknown as CommandContext;
}

test('a replica that came second waits until its read models show what the first one wrote, however late', async () => {
  const waited: Position[] = [];
  const context = lateReplica(async (position) => waited.push(position) === 3);
  expect(await bootstrap(context, 'key', new AbortController().signal)).toBeUndefined();
  expect(waited).toEqual([END, END, END]);
});

test('a replica that waits for them can be stopped', async () => {
  const stop = new AbortController();
  const context = lateReplica(async () => {
    stop.abort(new Error('stopped'));
    return false;
  });
  await expect(bootstrap(context, 'key', stop.signal)).rejects.toThrow('stopped');
});
