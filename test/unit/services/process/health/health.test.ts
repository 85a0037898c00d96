import { expect, test } from '@jest/globals';
import type { Position } from '../../../../../shared/ports/eventStore.ts';
import type { Health, RelayHealth } from '../../../../../shared/health/health.ts';
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

const projection = { caught_up: true, doubt: undefined, parked_streams: { count: 0, streams: [] } };
const projector = { state: 'active', lag_events: 0, lag_ms: 0 } as const;
const server = { name: 'mcp:files', state: 'up', tools: 1 } as const;
const relay: RelayHealth = { state: 'relaying', position: undefined, lag_ms: 0 };
const transparency_log = { state: 'active', size: 1, lag_ms: 0, signed_at: null } as const;
const witnesses = { wanted: 1, reached: 0, missing: ['a'] };
const retention = { state: 'waiting', due: 0, held: 0, failed: 0, erased: 0 } as const;
const webhooks = { state: 'active', enabled: 1, failing: 0 } as const;
const replays = { state: 'active', running: 0 } as const;
const reason = 'It fails.';

test('a service without trouble is ready', () => {
  const health = {
    projection,
    projector,
    tool_servers: [server],
    relay,
    transparency_log: { ...transparency_log, witnesses },
    retention,
    webhooks,
    replays,
  };
  expect(presentHealth({ ready: true, ...health }).status).toBe('ready');
});

const troubles: Omit<Health, 'ready'>[] = [
  { projection: { ...projection, parked_streams: { count: 1, streams: [] } } },
  { damaged_streams: [{ stream: 'session-1', first_revision: null, last_revision: null }] },
  { damaged_rows: { count: 1, rows: [], reason } },
  { projection: { ...projection, doubt: reason } },
  { projection: { ...projection, late: reason } },
  { projection: { ...projection, search_reason: reason } },
  { projector: { ...projector, search_reason: reason } },
  { tool_servers: [server, { ...server, state: 'away' }] },
  { relay: { ...relay, state: 'retrying' } },
  { relay: { ...relay, parked: { count: 1, keys: [] } } },
  { transparency_log: { ...transparency_log, trouble: reason } },
  { transparency_log: { ...transparency_log, doubt: reason } },
  { transparency_log: { ...transparency_log, witnesses: { ...witnesses, reason } } },
  { open_circuits: ['openai'] },
  { text_keys: { reason } },
  { erasures: { count: 1, reason } },
  { retention: { ...retention, reason } },
  { webhooks: { ...webhooks, reason } },
  { replays: { ...replays, reason } },
  { disk: { state: 'low', folders: [] } },
];

test.each(troubles)('a service is degraded with %j', (health) => {
  expect(presentHealth({ ready: true, ...health }).status).toBe('degraded');
});
