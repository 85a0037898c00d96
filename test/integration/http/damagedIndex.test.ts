import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { currentGeneration, generationFile } from '../../../infra/sqlite/readModels/generations.ts';

import { expectFailure } from '../../support/http/failures.ts';
import { startTestService, type Reply, type TestService } from '../../support/http/service.ts';
import { runCli } from '../../support/processes/cliProcess.ts';
import { eventually } from '../../support/processes/operator.ts';

let service: TestService;
let agent: string;
beforeAll(async () => {
  service = await startTestService();
  agent = await service.createAgent();
});
afterAll(() => service.close());

const say = (input: string): Promise<Reply> => service.post(`/v1/agents/${agent}/run`, { input });
const search = (word: string): Promise<Reply> => service.get(`/v1/sessions?q=${word}`);
const health = async () => (await service.get('/health/ready')).body.data;
const found = (word: string): Promise<Reply> =>
  eventually(
    () => search(word),
    ({ body }) => body.data?.length === 1,
  );

/**
 * Overwrites every page of the index with the same letter. Not with random bytes: about one in a
 * hundred of those has a length field for which SQLite reports a lack of memory instead of damage.
 */
function overwriteIndex(): void {
  const database = new DatabaseSync(
    generationFile(service.folder, currentGeneration(service.folder)!),
    { timeout: 5_000, defensive: false },
  );
  database.exec(
    "UPDATE word_index_data SET block = CAST(replace(hex(zeroblob(length(block))), '00', 'x') AS BLOB)",
  );
  database.close();
}

test('a damaged index of words fails searches, health says so and names the cure, and all else goes on', async () => {
  await say('a walnut');
  await found('walnut');
  expect((await health()).status).toBe('ready');
  overwriteIndex();
  expectFailure(await search('walnut'), 'store_unavailable');
  const degraded = await health();
  expect([degraded.status, degraded.projection.caught_up]).toEqual(['degraded', true]);
  expect(degraded.projection.search_reason).toMatch(
    /^The index of words is damaged \(.+\): rebuild the read models\.$/,
  );
  expect((await service.get('/v1/sessions')).body.data).toHaveLength(1);
  // What is to be indexed waits, and is not lost.
  expect((await say('a hazelnut')).status).toBe(200);
  const { code } = await runCli(service.folder, 'projections', 'rebuild');
  expect(code).toBe(0);
  await found('walnut');
  await found('hazelnut');
  const healed = await eventually(health, ({ status }) => status === 'ready');
  expect(healed.projection).not.toHaveProperty('search_reason');
});

test('a full disk takes no more of the index, as health says, until it has space again', async () => {
  await say('an almond');
  await found('almond');
  await service.restart({ DISK_STOP_FREE: '999999999999999' });
  expectFailure(await say('a pecan'), 'storage_full');
  expect((await runCli(service.folder, 'projections', 'rebuild')).code).toBe(0);
  const full = await eventually(health, ({ projection }) => projection.search_reason !== undefined);
  expect(full.projection.search_reason).toContain('too little disk space is free');
  expect(full.projection.unindexed_turns).toBeGreaterThan(0);
  await service.restart();
  await found('almond');
});
