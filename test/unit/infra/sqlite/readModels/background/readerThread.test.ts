import { rm } from 'node:fs/promises';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { createReaderThread } from '../../../../../../infra/sqlite/readModels/background/readerThread.ts';
import { openGenerationFile } from '../../../../../../infra/sqlite/readModels/generationFile.ts';
import {
  openGenerationReader,
  type GenerationReader,
} from '../../../../../../infra/sqlite/readModels/generationReader.ts';
import { generationFile } from '../../../../../../infra/sqlite/readModels/generations.ts';
import { VERSION } from '../../../../../../infra/sqlite/readModels/schema.ts';
import { temporaryFolder } from '../../../../../support/stores/sqlite/sqliteEventStore.ts';

const QUERY = { sql: 'SELECT position FROM checkpoint', parameters: [], limit: 10, bytes: 1_000 };

let folder: string;
let own: GenerationReader;
/** Queries on the connection of the caller. */
let ownQueries: number;

beforeEach(async () => {
  folder = await temporaryFolder();
  const file = generationFile(folder, 1);
  const database = openGenerationFile({ folder, file, exclusive: false, version: VERSION });
  database.exec("INSERT INTO checkpoint (only_row, position) VALUES (1, '7')");
  database.close();
  own = openGenerationReader(folder, 1);
  ownQueries = 0;
});
afterEach(async () => {
  own.close();
  await rm(folder, { recursive: true });
});

const counted = (generation: number): GenerationReader => ({
  ...own,
  generation,
  iterate(...args) {
    ownQueries += 1;
    return own.iterate(...args);
  },
});

test('a query is answered by the thread, not by the connection of the caller', async () => {
  await using thread = createReaderThread(folder, () => counted(1));
  expect((await thread.read(QUERY, 'acct_1')).answer).toEqual([{ position: '7' }]);
  expect(ownQueries).toBe(0);
});

test('the connection of the caller answers where the file of the generation is gone', async () => {
  await using thread = createReaderThread(folder, () => counted(2));
  expect((await thread.read(QUERY, 'acct_1')).answer).toEqual([{ position: '7' }]);
  expect(ownQueries).toBe(1);
});
