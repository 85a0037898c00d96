/** What a run costs in calls to the event store: each is a round trip that its client waits for. */
import { afterAll, beforeAll, beforeEach, expect, jest, test } from '@jest/globals';
import { rm } from 'node:fs/promises';
import { startTestService, type TestService } from '../../support/http/service.ts';
import {
  startEventStoreDbNode,
  type EventStoreDbNode,
} from '../../support/servers/eventstoredb-node/index.ts';
import { eventually } from '../../support/processes/operator.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

let folder: string;
let node: EventStoreDbNode;
let service: TestService;
let appends = 0;
const streamsRead: string[] = [];

beforeAll(async () => {
  folder = await temporaryFolder();
  node = await startEventStoreDbNode({ folder });
  service = await startTestService({ text: 'Hello.' }, { EVENTSTOREDB_URL: node.connectionString });
  node.faults.onAppend = () => {
    appends += 1;
    return 'none';
  };
  const { readStream } = node.log;
  jest.spyOn(node.log, 'readStream').mockImplementation((stream, range) => {
    streamsRead.push(stream);
    return readStream(stream, range);
  });
});
afterAll(async () => {
  await service.close();
  await node.close();
  await rm(folder, { recursive: true });
});
beforeEach(() => {
  appends = 0;
  streamsRead.length = 0;
});

const run = (agent: string) => service.post(`/v1/agents/${agent}/run`, { input: 'Hi' });

const indexedTurns = () =>
  eventually(
    () => service.get('/health/ready'),
    ({ body }) =>
      body.data.projection.caught_up === true && body.data.projection.unindexed_turns === undefined,
  );

test('a run in a new session is two appends and no read, and the session is not read to be indexed either', async () => {
  const agent = await service.createAgent();
  expect((await run(agent)).status).toBe(200);
  await indexedTurns();
  [appends, streamsRead.length] = [0, 0];
  for (let runs = 1; runs <= 3; runs += 1) {
    expect((await run(agent)).status).toBe(200);
    expect(appends).toBe(2 * runs);
  }
  await indexedTurns();
  expect(streamsRead.filter((stream) => stream.startsWith('session-'))).toEqual([]);
});
