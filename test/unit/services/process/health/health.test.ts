import { expect, test } from '@jest/globals';
import type { Position } from '../../../../../shared/ports/eventStore.ts';
import type { RelayHealth } from '../../../../../shared/health/health.ts';
import { presentHealth } from '../../../../../services/api/health/presenter.ts';
import { checkHealth } from '../../../../../services/process/health/health.ts';
import type { ProcessParts } from '../../../../../services/process/processParts.ts';

const REASON = 'The read models are being built anew. The log was restored.';

/** A process whose read models are being rebuilt. */
const healing: Pick<ProcessParts, 'parts'> = {
  parts: [
    { trouble: () => undefined },
    {
      health: async () => ({
        projection: { caught_up: false, doubt: REASON, parked_streams: { count: 0, streams: [] } },
      }),
      distrustReason: () => REASON,
    },
  ],
};

test('a start that rebuilds read models is not ready and says why', async () => {
  const health = await checkHealth(healing, 'starting');
  expect(health).toEqual({
    ready: false,
    reason: `The service is starting and waits. ${REASON}`,
  });
  expect(() => presentHealth(health)).toThrow(REASON);
});

test('a service whose read models are being rebuilt is degraded and says why', async () => {
  expect(presentHealth(await checkHealth(healing, 'up'))).toEqual({
    status: 'degraded',
    projection: {
      caught_up: false,
      reason: REASON,
      parked_streams: [],
    },
  });
});

test('a process whose log is away is not ready and says why, whatever else its parts tell', async () => {
  const parts = [{ trouble: () => 'The log is away.' }, ...healing.parts];
  expect(await checkHealth({ parts }, 'up')).toEqual({ ready: false, reason: 'The log is away.' });
  expect(await checkHealth({ parts }, 'starting')).toEqual({
    ready: false,
    reason: 'The service is starting and waits. The log is away.',
  });
});

test('a log that is away is told at once, though other parts do not answer', async () => {
  const silent = { health: () => new Promise<never>(() => undefined) };
  const parts = [{ trouble: () => 'The log is away.' }, silent];
  expect(await checkHealth({ parts }, 'up')).toEqual({ ready: false, reason: 'The log is away.' });
});

test('a relay with parked keys is degraded, and names them', () => {
  const keys = [{ topic: 't', key: 'agent_1', event_id: 'e', position: '1' as Position, size: 9 }];
  const relay = { state: 'relaying', position: undefined, lag_ms: 0, parked: { count: 7, keys } };
  expect(presentHealth({ ready: true, relay: relay as RelayHealth })).toEqual({
    status: 'degraded',
    relay: { state: 'relaying', lag_ms: 0, parked: { count: 7, keys } },
  });
});

test('a service with very many parked or damaged streams lists some, and counts them all', () => {
  const stream = { stream: 'session-1', revision: 1, event_type: 'x', error: 'secret' };
  const damaged_streams = [{ stream: 'session-2', first_revision: null, last_revision: null }];
  const projection = { caught_up: true, doubt: undefined };
  expect(
    presentHealth({
      ready: true,
      projection: { ...projection, parked_streams: { count: 10_000, streams: [stream] } },
      damaged_streams,
      damaged_count: 2_000,
    }),
  ).toEqual({
    status: 'degraded',
    projection: {
      caught_up: true,
      parked_streams: [{ stream: 'session-1', revision: 1, event_type: 'x' }],
      parked_count: 10_000,
    },
    damaged_streams,
    damaged_count: 2_000,
  });
});
