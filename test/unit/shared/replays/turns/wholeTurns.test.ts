import { expect, test } from '@jest/globals';
import { createDamagedStreams } from '../../../../../shared/eventlog/reading/damagedStreams.ts';
import { readWholeTurns } from '../../../../../shared/replays/turns/wholeTurns.ts';
import { sessionErased, sessionStarted } from '../../../../support/builders/events.ts';
import { recordHistory } from '../../../../support/builders/history.ts';
import { memoryKeys } from '../../../../support/fakes/memoryKeys.ts';

test('a session that was erased before the first turn to read has no turns, and says why', async () => {
  const { record } = recordHistory();
  const events = [sessionStarted(), sessionErased()].map((event) =>
    record({ stream: 'session-session_1' }, event),
  );
  const source = {
    store: {
      keys: memoryKeys().keys,
      readStream: async (_: string, { from = 0 }) =>
        events.filter(({ revision }) => revision >= from),
    },
    damaged: createDamagedStreams(() => undefined),
  } as unknown as Parameters<typeof readWholeTurns>[0];
  const turns = readWholeTurns(source, 'session_1', { from: 1, upTo: Infinity });
  await expect(turns.next()).rejects.toMatchObject({ code: 'session_erased' });
});
