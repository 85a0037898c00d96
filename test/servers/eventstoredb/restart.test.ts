/**
 * A service that starts, stops and starts again on a log that was empty at first, like every
 * installation.
 */
import { expect, test } from '@jest/globals';
import { rm } from 'node:fs/promises';
import { startEventStoreDbProcess } from '../../support/servers/eventstoredb/eventStoreDbProcess.ts';
import { startTestService } from '../../support/http/service.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

test('lists and runs agents from before and after each restart', async () => {
  const folder = await temporaryFolder();
  const server = await startEventStoreDbProcess({ folder });
  const service = await startTestService(
    { text: 'Hello.' },
    { EVENTSTOREDB_URL: server.connectionString },
  );
  const agents: string[] = [];
  try {
    for (let start = 0; start < 4; start += 1) {
      agents.push(await service.createAgent({ name: `Agent ${start}` }));
      for (const agent of agents)
        expect((await service.post(`/v1/agents/${agent}/run`, { input: 'hi' })).status).toBe(200);
      expect(
        (await service.get('/v1/agents')).body.data.map(
          ({ agent_id }: { agent_id: string }) => agent_id,
        ),
      ).toEqual(agents);
      expect((await service.get('/health/ready')).body.data.status).toBe('ready');
      await service.restart();
    }
  } finally {
    await service.close();
    await server.kill('SIGTERM');
    await rm(folder, { recursive: true });
  }
}, 180_000);
