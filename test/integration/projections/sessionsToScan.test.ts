import { rm } from 'node:fs/promises';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { openGenerationReader } from '../../../infra/sqlite/readModels/generationReader.ts';
import { openSqliteProjectionStore } from '../../../infra/sqlite/readModels/projectionStore.ts';
import { selectSessionsToScan } from '../../../infra/sqlite/readModels/scanSessions.ts';
import { LIMITS } from '../../../shared/limits.ts';
import type { SessionFilter } from '../../../shared/sessions/sessionFilter.ts';
import { sessionStarted, turnCompleted, turnStarted } from '../../support/builders/events.ts';
import { reached, recordHistory } from '../../support/builders/history.ts';
import { ALL } from '../../support/stores/projections/agentsOf.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

let folder: string;
let store: Awaited<ReturnType<typeof openSqliteProjectionStore>>;
let reader: ReturnType<typeof openGenerationReader>;
let history: ReturnType<typeof recordHistory>;
beforeEach(async () => {
  folder = await temporaryFolder();
  store = await openSqliteProjectionStore({ folder });
  reader = openGenerationReader(folder, store.generation);
  history = recordHistory();
});
afterEach(async () => {
  reader.close();
  await store.close();
  await rm(folder, { recursive: true });
});

/** A session whose turns all have the word `often`. */
async function talk(session: string, agent: string, turns: number): Promise<void> {
  const recorded = { stream: `session-${session}` };
  const events = [
    sessionStarted(agent),
    ...Array.from({ length: turns }, (_, n) => [turnStarted(n + 1), turnCompleted(n + 1)]).flat(),
  ].map((event) => history.record(recorded, event));
  await store.apply(events, reached(history.lastPosition()));
  for (let more = true; more;) {
    const waiting = await store.unindexed();
    await store.index(waiting.map((turn) => ({ ...turn, tokens: ['often', `turn${turn.turn}`] })));
    more = waiting.length > 0;
  }
}
const toScan = (filter: SessionFilter, ...words: string[]): Promise<string[] | undefined> =>
  selectSessionsToScan(() => reader, 'acct_1', { ...ALL, ...filter, words });

test('the turns of a few sessions are scanned when more than a third as many turns have the words', async () => {
  await talk('session_1', 'agent_1', 9);
  await talk('session_2', 'agent_2', 4);
  await talk('session_3', 'agent_2', 2);
  expect(await toScan({ agent_id: 'agent_2' }, 'often')).toEqual(['session_3', 'session_2']);
  expect(await toScan({ agent_id: 'agent_2', order: 'oldest' }, 'often')).toEqual([
    'session_2',
    'session_3',
  ]);
  expect(await toScan({ agent_id: 'agent_3' }, 'often')).toEqual([]);
  // The index is searched for a rare word, and without a filter.
  expect(await toScan({ agent_id: 'agent_2' }, 'often', 'turn2')).toHaveLength(2);
  expect(await toScan({ agent_id: 'agent_2' }, 'often', 'turn3')).toBeUndefined();
  expect(await toScan({}, 'often')).toBeUndefined();
});

test('the index is searched when a filter leaves many sessions', async () => {
  const { fewSessions: most } = LIMITS.search;
  const events = Array.from({ length: most + 1 }, (_, n) =>
    history.record(
      { stream: `session-session_${n}` },
      sessionStarted(n === 0 ? 'agent_2' : 'agent_1'),
    ),
  );
  await store.apply(events, reached(history.lastPosition()));
  await talk('session_last', 'agent_3', 1);
  expect(await toScan({ agent_id: 'agent_1' }, 'often')).toHaveLength(most);
  expect(await toScan({ status: 'idle' }, 'often')).toBeUndefined();
});
