import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { abortable } from '../../../../../shared/lib/concurrency/abortable.ts';
import { handle } from '../../../../../shared/commandHandling/handle.ts';
import { wholeStreamTarget } from '../../../../../shared/commandHandling/targetStream.ts';
import { replayStream } from '../../../../../shared/eventlog/streams.ts';
import { replay } from '../../../../../shared/replays/decider.ts';
import type { ReplayRunContext } from '../../../../../services/followers/replays/replayContext.ts';
import { runReplay } from '../../../../../services/followers/replays/runReplay.ts';
import { permitWith } from '../../../../support/builders/memory.ts';
import { replayStarted } from '../../../../support/builders/events.ts';
import { handleContext, writeStream } from '../../../../support/stores/handleContext.ts';
import {
  eventStoreFixture,
  type SqliteEventStoreFixture,
} from '../../../../support/stores/sqlite/sqliteEventStore.ts';

const actor = { account_id: 'acct_1', key_id: 'key_1', request_id: 'request_1' };

let fixture: SqliteEventStoreFixture;
beforeEach(async () => void (fixture = await eventStoreFixture()));
afterEach(() => fixture.dispose());

test('a record that finds the replay cancelled ends its other sessions as well', async () => {
  const context = handleContext(fixture.store(), Date.UTC(2026, 10, 22));
  const stream = replayStream('replay_1');
  const sessions = ['gone', 'working'].map((session_id) => ({ session_id, revision: 4, turns: 2 }));
  await writeStream(context, actor, stream, [replayStarted({ sessions })]);
  const permit = permitWith(() => undefined);
  let reservations = 0;
  const memory = {
    tryReserve: () => permit,
    hasWaiters: () => false,
    async reserve(_request: unknown, { signal }: { signal: AbortSignal }) {
      reservations += 1;
      if (reservations === 4) return abortable(new Promise<never>(() => undefined), signal);
      // Both sessions were counted before. The first one can't be read, and that is recorded.
      if (reservations === 3) {
        const cancel = { type: 'end_replay', status: 'cancelled' } as const;
        await handle(context, actor, wholeStreamTarget(stream, replay), cancel);
      }
      return permit;
    },
  };
  const logger = { warn: () => undefined, debug: () => undefined };
  const replaying = { context: { ...context, memory, logger } } as unknown as ReplayRunContext;
  await runReplay(replaying, 'replay_1', new AbortController().signal);
  expect(reservations).toBe(4);
}, 5_000);
