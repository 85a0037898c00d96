import { expect, test } from '@jest/globals';
import { createEventStoreReader } from '../../../../../infra/eventstoredb/read/reader.ts';
import { startEndlessServer } from '../../../../support/servers/eventstoredb-node/endlessServer.ts';

const MIB = 1024 * 1024;

test('the first event is found, although the first events together exceed an answer', async () => {
  const { client, stop } = await startEndlessServer({ type: 'happened.v1', bytes: MIB });
  const attempt = {
    isFirst: false,
    signal: AbortSignal.timeout(30_000),
    connection: { client, recordActivity: () => undefined },
  };
  const reader = createEventStoreReader({
    deadlineMs: 5_000,
    connections: { requiresLeader: false },
    callWithRetry: (_call: object, send: (sent: typeof attempt) => unknown) => send(attempt),
  } as never);
  try {
    expect(await reader.firstEvent()).toMatchObject({ stream: 'session-s', revision: 0 });
  } finally {
    stop();
  }
});
