import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { newestEventPart } from '../../../../../services/process/startup/newestEvent.ts';
import { createDamagedStreams } from '../../../../../shared/eventlog/reading/damagedStreams.ts';
import { storeUnavailableError } from '../../../../../shared/lib/errors/turnlogError.ts';
import type { LeafComparison } from '../../../../../shared/transparency/leaves/leafComparison.ts';
import type { Checkpoint, StoredEvent } from '../../../../../shared/ports/eventStore.ts';
import { sessionStarted } from '../../../../support/builders/events.ts';
import { recordHistory } from '../../../../support/builders/history.ts';

const SESSION = { stream: 'session-session_1' };

/** The streams that a start finds damaged in a log of these events. */
async function findDamaged(
  events: readonly StoredEvent[],
  followed?: { event: StoredEvent; hash: string },
): Promise<string[]> {
  const damaged = createDamagedStreams(() => undefined);
  const checkpoint = followed && {
    position: followed.event.position,
    event_id: followed.event.id,
    event_hash: followed.hash,
  };
  const { prepare } = newestEventPart({
    store: {
      head: async () => events.at(-1)?.position,
      eventAt: async (position) => events.find((event) => event.position === position),
      readStream: async (stream) => events.filter((event) => event.stream === stream),
      keys: {} as never,
    },
    damaged,
    checkpoint: async () => checkpoint as Checkpoint | undefined,
    logger: {} as never,
  });
  await prepare!(new AbortController().signal);
  return damaged.list().map(({ stream }) => stream);
}

test('examines the newest event of the log', async () => {
  const { record } = recordHistory();
  const event = record(SESSION, sessionStarted('agent_1'));
  expect(await findDamaged([event])).toEqual([]);
  expect(await findDamaged([{ ...event, data: '{}' }])).toEqual(['session-session_1']);
});

test('says what it waits for while the log can’t be compared with its tree', async () => {
  const { record } = recordHistory();
  const event = record(SESSION, sessionStarted('agent_1'));
  let isLost = true;
  const findFlaw = async (): Promise<undefined> => {
    if (isLost) throw storeUnavailableError('The state is lost.');
  };
  const part = newestEventPart({
    store: {
      head: async () => event.position,
      eventAt: async () => event,
      readStream: async () => [event],
      keys: {} as never,
      leaves: { findFlaw, newestKnown: () => -1 } as unknown as LeafComparison,
    },
    damaged: createDamagedStreams(() => undefined),
    checkpoint: async () => undefined,
    logger: { warn: () => undefined } as never,
  });
  expect(part.trouble!()).toBeUndefined();
  const prepared = part.prepare!(new AbortController().signal);
  await sleep(100);
  expect(part.trouble!()).toBe('The state is lost.');
  isLost = false;
  await prepared;
  expect(part.trouble!()).toBeUndefined();
});

test('does not examine events of other applications, except the one of the checkpoint', async () => {
  const { record } = recordHistory();
  const foreign = record({ stream: 'order-1' }, { type: 'order.paid', data: {} });
  const within = record(SESSION, { type: 'order.paid', data: {} });
  expect(await findDamaged([foreign])).toEqual([]);
  expect(await findDamaged([within])).toEqual([]);
  const followed = { event: within, hash: 'the hash that was recorded' };
  expect(await findDamaged([within], followed)).toEqual(['session-session_1']);
});
