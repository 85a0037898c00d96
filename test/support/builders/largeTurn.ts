import { createDamagedStreams } from '../../../shared/eventlog/reading/damagedStreams.ts';
import type { StoredEvent } from '../../../shared/ports/eventStore.ts';
import type { TurnSource } from '../../../shared/sessions/turns/turn.ts';
import { memoryKeys } from '../fakes/memoryKeys.ts';
import { memoryReads } from '../fakes/memoryReads.ts';
import { sessionStarted, toolCalled, turnCompleted, turnStarted } from './events.ts';
import { recordHistory } from './history.ts';

const session_id = 'session_01kahz1c3sf6w9m3v5q7x9z1a3';
const stream = `session-${session_id}`;

/** The first turn of the session. */
export const largeTurn = { account_id: 'acct_1', session_id, turn: 1 };

/**
 * A session whose first turn has tool calls of 200,000 characters, and small turns after it. `read`
 * are the pages that were read.
 */
export function sessionWithLargeTurn(calls: number, later = 1) {
  const history = recordHistory();
  const result = 'x'.repeat(200_000);
  const log = [
    sessionStarted(),
    turnStarted(1),
    ...Array.from({ length: calls }, (_, at) => toolCalled(1, { call_id: `call_${at}`, result })),
    turnCompleted(1),
    ...Array.from({ length: later }, (_, at) => [
      turnStarted(at + 2),
      turnCompleted(at + 2),
    ]).flat(),
  ].map((event) => history.record({ stream }, event));
  const { readStream } = memoryReads(log);
  const read: StoredEvent[][] = [];
  const source: TurnSource = {
    store: {
      // Copies, as from a store: nothing else refers to them.
      async readStream(...args) {
        const page = (await readStream(...args)).map((event) => ({ ...event }));
        read.push(page);
        return page;
      },
      keys: memoryKeys().keys,
    },
    damaged: createDamagedStreams(() => undefined),
    readModels: { findSession: async () => undefined, findTranscript: async () => undefined },
  };
  return { log, read, source };
}
