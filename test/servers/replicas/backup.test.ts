/** Backups of services whose log, or everything, is in servers. */
import { cp, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { makeSigningKey } from '../../../services/compose/signingKeys.ts';
import { apiClient, TEST_KEY } from '../../support/http/service.ts';
import { runCliWith } from '../../support/processes/cliProcess.ts';
import { eventually } from '../../support/processes/operator.ts';
import { startServerProcess } from '../../support/processes/serverProcess.ts';
import { startEventStoreDbProcess } from '../../support/servers/eventstoredb/eventStoreDbProcess.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';
import { deployments } from '../../support/stores/forger/deployments.ts';

let folder: string;
beforeEach(async () => {
  folder = await temporaryFolder();
});
afterEach(() => rm(folder, { recursive: true }));

type Env = Record<string, string>;

async function cliWith(env: Env, ...args: string[]) {
  const { code, out, err } = await runCliWith(env, '--json', ...args);
  return { code, ...(JSON.parse(out || err) as Record<string, any>) };
}

/** Works with a service, and stops it once a checkpoint covers its log. */
async function served<Result>(
  env: Env,
  work: (client: ReturnType<typeof apiClient>) => Promise<Result>,
): Promise<Result> {
  const server = startServerProcess({ ...env, BOOTSTRAP_API_KEY: TEST_KEY });
  const client = apiClient(await server.ready, TEST_KEY);
  const result = await work(client);
  await eventually(
    () => client.get('/health/ready'),
    ({ body }) => body.data?.transparency_log?.lag_ms === 0,
  );
  server.kill('SIGTERM');
  await server.exited;
  return result;
}

test('with a cluster, keys and transparency log are backed up, and the command says what is not', async () => {
  const node = await startEventStoreDbProcess({ folder: join(folder, 'node') });
  const env = (data: string) => ({
    DATA_DIR: join(folder, data),
    EVENTSTOREDB_URL: node.connectionString,
  });
  try {
    const [kept, erased] = await served(env('data'), async (client) => {
      const agent = { name: 'a', instruction: 'i', model: 'offline-echo' };
      const { agent_id } = (await client.post('/v1/agents', agent)).body.data;
      const run = async (): Promise<string> =>
        (await client.post(`/v1/agents/${agent_id}/run`, { input: 'x' })).body.data.session_id;
      return [await run(), await run()];
    });
    const target = join(folder, 'backup');
    expect(await cliWith(env('data'), 'backup', target)).toMatchObject({
      code: 0,
      log: null,
      leaves: expect.any(Number),
      not_included: [expect.stringContaining('EVENTSTOREDB_URL')],
    });
    expect((await readdir(target)).toSorted()).toEqual(['backup.json', 'backup.lock', 'tlog']);
    const keys = await readdir(`${target}-keys`);
    expect(keys).toEqual(expect.arrayContaining(['keys.db', 'log-signing-key.pem', 'master.key']));
    const here = { DATA_DIR: join(folder, 'restored') };
    expect(await cliWith(here, 'restore', target)).toMatchObject({
      code: 1,
      error: { message: expect.stringContaining('has no events, because its log is in a cluster') },
    });
    expect(await cliWith(env('restored'), 'restore', target)).toMatchObject({ code: 0 });
    await served(env('restored'), async (client) => {
      for (const session of [kept, erased])
        expect((await client.get(`/v1/sessions/${session}/events`)).status).toBe(200);
      expect((await client.send('DELETE', `/v1/sessions/${erased}`, '')).status).toBe(200);
    });
  } finally {
    await node.kill();
  }
}, 120_000);

test('a cluster that was backed up before the transparency log is restored only where that is declared', async () => {
  const places = { node: join(folder, 'node'), earlier: join(folder, 'earlier') };
  const target = join(folder, 'backup');
  /** A run that has a leaf of the transparency log. */
  const run = async (client: ReturnType<typeof apiClient>) => {
    const agent = { name: 'a', instruction: 'i', model: 'offline-echo' };
    const { agent_id } = (await client.post('/v1/agents', agent)).body.data;
    const { body } = await client.post(`/v1/agents/${agent_id}/run`, { input: 'x' });
    await eventually(
      () => client.get(`/v1/sessions/${body.data.session_id}/proof`),
      ({ status }) => status === 200,
    );
  };
  const onNode = async (at: string, data: string, work: (env: Env) => Promise<unknown>) => {
    const node = await startEventStoreDbProcess({ folder: at });
    try {
      await work({ DATA_DIR: join(folder, data), EVENTSTOREDB_URL: node.connectionString });
    } finally {
      await node.kill();
    }
  };
  await onNode(places.node, 'data', (env) => served(env, run));
  await cp(places.node, places.earlier, { recursive: true });
  await onNode(places.node, 'data', async (env) => {
    await served(env, run);
    expect(await cliWith(env, 'backup', target)).toMatchObject({ code: 0 });
  });
  await onNode(places.earlier, 'restored', async (env) => {
    expect(await cliWith(env, 'restore', target)).toMatchObject({
      code: 1,
      error: { message: expect.stringMatching(/is ahead of the log.*--accept-restored/) },
    });
    const declared = ['restore', target, '--accept-restored', 'a disk broke'];
    expect(await cliWith(env, ...declared)).toMatchObject({
      code: 0,
      refusal: expect.stringContaining('is ahead of the log'),
    });
    await served(env, run);
    expect(await cliWith(env, 'audit', 'verify', '--texts')).toMatchObject({ code: 0 });
  });
  await onNode(join(folder, 'empty'), 'lost', async (env) => {
    expect(await cliWith(env, 'restore', target)).toMatchObject({
      code: 1,
      error: { message: expect.stringContaining('is ahead of the log') },
    });
  });
}, 120_000);

const distributed = (await deployments()).find(({ name }) => name.includes('PostgreSQL'));

(distributed ? test : test.skip)(
  'with a database, the keys of the process and the checkpoint are backed up, and restored where their options say',
  async () => {
    const deployment = await distributed!.open();
    try {
      const service = await deployment.start();
      await service.ready();
      await service.write();
      await service.stop();
      const target = join(folder, 'backup');
      const { code, out } = await deployment.cli('--json', 'backup', target);
      expect([code, JSON.parse(out)]).toMatchObject([
        0,
        {
          log: null,
          leaves: null,
          not_included: [
            expect.stringContaining('EVENTSTOREDB_URL'),
            expect.stringContaining('pg_dump'),
          ],
        },
      ]);
      const checkpoint = join(target, 'checkpoint');
      expect(await readFile(checkpoint, 'utf8')).toBe(await deployment.checkpoint());
      const places = {
        MASTER_KEY_FILE: join(folder, 'master.key'),
        LOG_SIGNING_KEY_FILE: join(folder, 'signing.pem'),
      };
      const compare = ['restore', target, '--checkpoint', checkpoint];
      const restored = await deployment.cliWith(places, '--json', ...compare);
      expect([restored.code, JSON.parse(restored.out)]).toMatchObject([
        0,
        { refusal: null, compared: [{ name: checkpoint }] },
      ]);
      for (const [option, file] of Object.entries(places))
        expect(await readFile(file)).toEqual(await readFile(deployment.env[option]!));
      // Without the master key it is not a success.
      const unset = await deployment.cliWith({ MASTER_KEY_FILE: '' }, 'backup', `${target}-2`);
      expect([unset.code, unset.err]).toEqual([
        1,
        expect.stringContaining('MASTER_KEY_FILE must be set'),
      ]);
      const absent = join(folder, 'absent.key');
      const lacking = await deployment.cliWith(
        { MASTER_KEY_FILE: absent },
        '--json',
        'backup',
        `${target}-3`,
      );
      expect([lacking.code, JSON.parse(lacking.out)]).toMatchObject([
        1,
        { complete: true, not_included: expect.arrayContaining([expect.stringContaining(absent)]) },
      ]);
      // Other keys in their place are not overwritten.
      await rm(places.LOG_SIGNING_KEY_FILE);
      makeSigningKey(places.LOG_SIGNING_KEY_FILE);
      const again = await deployment.cliWith(places, ...compare);
      expect([again.code, again.err]).toEqual([1, expect.stringContaining('lacks keys')]);
    } finally {
      await deployment.close();
    }
  },
  120_000,
);
