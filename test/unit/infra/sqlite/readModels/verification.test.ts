import { rm } from 'node:fs/promises';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from '@jest/globals';
import { generationFile } from '../../../../../infra/sqlite/readModels/generations.ts';
import { openSqliteProjectionStore } from '../../../../../infra/sqlite/readModels/projectionStore.ts';
import {
  openSqliteLiveRows,
  openSqliteRowCopy,
} from '../../../../../infra/sqlite/readModels/verification.ts';
import { BEGINNING } from '../../../../../shared/readModels/integrity/verificationState.ts';
import { sessionStarted, turnCompleted, turnStarted } from '../../../../support/builders/events.ts';
import { reached, recordHistory } from '../../../../support/builders/history.ts';
import { temporaryFolder } from '../../../../support/stores/sqlite/sqliteEventStore.ts';

test('a failure of SQLite in a copy is store_unavailable, which the command line explains', async () => {
  const folder = await temporaryFolder();
  try {
    const copy = await openSqliteRowCopy({ folder });
    await copy.saveState(BEGINNING);
    await copy.close();
    for (const use of [copy.state, copy.startOver, () => copy.saveState(BEGINNING)])
      await expect(use()).rejects.toMatchObject({ code: 'store_unavailable' });
  } finally {
    await rm(folder, { recursive: true });
  }
});

test('the index fits turns with and without words, and one word too many is found', async () => {
  const folder = await temporaryFolder();
  const store = await openSqliteProjectionStore({ folder });
  const live = openSqliteLiveRows({ folder });
  try {
    const history = recordHistory();
    const turns = [turnStarted(1), turnCompleted(1), turnStarted(2), turnCompleted(2)];
    await store.apply(
      [sessionStarted(), ...turns].map((event) =>
        history.record({ stream: 'session-session_1' }, event),
      ),
      reached(history.lastPosition()),
    );
    const [first, second] = await store.unindexed();
    await store.index([
      { ...first!, tokens: ['apple', 'pear'] },
      { ...second!, tokens: [] },
    ]);
    const { rows, misfits } = await live.read('turn_words', undefined, 9);
    expect(rows).toMatchObject([
      { turn: 1, words: 'apple pear' },
      { turn: 2, words: '' },
    ]);
    expect(misfits).toEqual([]);
    const database = new DatabaseSync(generationFile(folder, store.generation));
    database.exec("INSERT INTO word_index (rowid, words) VALUES (1, 'plum')");
    database.close();
    const surplus = { table: 'word_index', key: '*', column: 'unrecorded' };
    expect((await live.read('turn_words', undefined, 9)).misfits).toEqual([surplus]);
  } finally {
    await live.close();
    await store.close();
    await rm(folder, { recursive: true });
  }
});

test('the rows are those of the generation that is current at each read', async () => {
  const folder = await temporaryFolder();
  const live = openSqliteLiveRows({ folder });
  try {
    await (await openSqliteProjectionStore({ folder })).close();
    expect((await live.read('sessions', undefined, 9)).rows).toEqual([]);
    const next = await openSqliteProjectionStore({ folder, atLeast: 2 });
    const { record, lastPosition } = recordHistory();
    await next.apply(
      [record({ stream: 'session-session_1' }, sessionStarted())],
      reached(lastPosition()),
    );
    await next.close();
    expect((await live.read('sessions', undefined, 9)).rows).toHaveLength(1);
  } finally {
    await live.close();
    await rm(folder, { recursive: true });
  }
});
