import { expect, test } from '@jest/globals';
import { requireSameLog } from '../../../services/server/requireSameLog.ts';
import { storeUnavailable } from '../../../shared/errors.ts';
import { checkpointOf, identityOf } from '../../../shared/eventlog/logIdentity.ts';
import { agentCreated } from '../../support/events/events.ts';
import { recordHistory } from '../../support/events/history.ts';
import { fixedLog } from '../../support/store/fixedLog.ts';

function logOf(agents: number) {
  const { record } = recordHistory();
  const events = Array.from({ length: agents }, (_, i) =>
    record({ stream: `agent-${i}` }, agentCreated()),
  );
  return { events, log: fixedLog(events) };
}

test('a service begins over the log that its read models were built from, or where there are none', async () => {
  const { events, log } = logOf(3);
  const checkpoint = checkpointOf((await identityOf(log))!, events[1]!);
  await requireSameLog(log, { checkpoint: async () => checkpoint });
  await requireSameLog(log, { checkpoint: async () => undefined });
});

test('a service does not begin over a log that is shorter, and that is told', async () => {
  const { events, log } = logOf(3);
  const checkpoint = checkpointOf((await identityOf(log))!, events[2]!);
  const shorter = fixedLog(events.slice(0, 2));
  await expect(
    requireSameLog(shorter, { checkpoint: async () => checkpoint }),
  ).rejects.toMatchObject({ code: 'log_changed', retriable: true });
});

test('read models that are away are no answer', async () => {
  const checkpoint = () => Promise.reject(storeUnavailable('away'));
  await expect(requireSameLog(logOf(1).log, { checkpoint })).rejects.toMatchObject({
    code: 'store_unavailable',
  });
});
