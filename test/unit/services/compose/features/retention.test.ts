import { expect, test } from '@jest/globals';
import { judgeClock } from '../../../../../services/compose/features/retention.ts';
import { createDamagedStreams } from '../../../../../shared/eventlog/reading/damagedStreams.ts';
import { agentCreated } from '../../../../support/builders/events.ts';
import { positionOf, recordHistory } from '../../../../support/builders/history.ts';
import { memoryKeys } from '../../../../support/fakes/memoryKeys.ts';

const NOW = Date.UTC(2026, 10, 21);
const recorded_at = new Date(NOW - 60_000).toISOString();
const own = recordHistory().record({ stream: 'agent-agent_1', at: recorded_at }, agentCreated());
const foreign = { ...own, stream: 'orders-1', type: 'order.paid', metadata: 'not JSON' };

test.each([
  ['of Turnlog is the proven time', own, NOW - 60_000],
  ['of another program proves no time', foreign, undefined],
])('a newest event of the log %s', async (_what, event, time) => {
  const store = {
    keys: memoryKeys().keys,
    readStream: async () => [],
    firstEvent: async () => own,
    eventAt: async () => event,
  };
  const source = { store, damaged: createDamagedStreams(() => undefined) };
  const { judge, provenTime } = judgeClock(source, {
    now: () => NOW,
    monotonic: () => 0,
    newest: async () => positionOf(1),
  });
  await judge();
  expect((await provenTime())?.time).toBe(time);
});
