import { rm } from 'node:fs/promises';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from '@jest/globals';
import { generationFile } from '../../../../../infra/sqlite/readModels/generations.ts';
import { openSqliteProjectionStore } from '../../../../../infra/sqlite/readModels/projectionStore.ts';
import type { TurnWords } from '../../../../../shared/search/turnIndex.ts';
import { sessionStarted, turnCompleted, turnStarted } from '../../../../support/builders/events.ts';
import { reached, recordHistory } from '../../../../support/builders/history.ts';
import { temporaryFolder } from '../../../../support/stores/sqlite/sqliteEventStore.ts';

/** The first two were made in the same millisecond. */
const [A, B, C] = [
  'session_01kb4t8z2saaa',
  'session_01kb4t8z2sbbb',
  'session_01kb4t8z2tccc',
] as const;

test('turns are indexed together as one segment, each at the next place of its millisecond', async () => {
  const folder = await temporaryFolder();
  const store = await openSqliteProjectionStore({ folder });
  const history = recordHistory();
  const events = [C, B, A].flatMap((session) => {
    const recorded = { stream: `session-${session}` };
    const turns = [turnStarted(1), turnCompleted(1), turnStarted(2), turnCompleted(2)];
    return [sessionStarted(), ...turns].map((event) => history.record(recorded, event));
  });
  await store.apply(events, reached(history.lastPosition()));
  const turns = (await store.unindexed()).map((turn): TurnWords => ({ ...turn, tokens: ['word'] }));
  const [first, ...others] = turns as [TurnWords, ...TurnWords[]];
  const database = new DatabaseSync(generationFile(folder, store.generation), { readOnly: true });
  const indexed = () =>
    database
      .prepare('SELECT session_id, turn, rowid & 2097151 AS slot FROM turn_words ORDER BY rowid')
      .all()
      .map(({ session_id, turn, slot }) => [session_id, turn, slot]);
  const segments = () =>
    database.prepare('SELECT count(DISTINCT segid) AS count FROM word_index_idx').get()!['count'];

  await store.index([{ ...first, session_id: 'session_unknown' }, ...others]);
  expect(indexed()).toEqual([
    [B, 1, 0],
    [B, 2, 1],
    [A, 1, 2],
    [A, 2, 3],
    [C, 2, 0],
  ]);
  expect(segments()).toBe(1);
  await store.index(turns);
  expect(indexed().at(-1)).toEqual([C, 1, 1]);
  expect(indexed()).toHaveLength(6);

  database.close();
  await store.close();
  await rm(folder, { recursive: true });
});
