/**
 * A data folder on a small file system that fills up. Mounting one takes root; elsewhere the suite
 * is skipped, and test/unit/shared/storage/diskWatch.test.ts covers the levels.
 */
import { execFileSync } from 'node:child_process';
import { appendFileSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { MIB } from '../../shared/lib/units.ts';
import { expectFailure } from '../support/http/failures.ts';
import { apiClient, TEST_KEY, type Client, type Reply } from '../support/http/service.ts';
import { eventually } from '../support/processes/operator.ts';
import { startServerProcess, type ServerProcess } from '../support/processes/serverProcess.ts';
import { misfitIn } from '../support/stores/misfitIn.ts';

const SIZE = 320 * MIB;
const BALLAST = 128 * MIB;
const WARN = 128 * MIB;
/** The read models need 32 MiB to write their log back into their file, for an erasure at once. */
const STOP = 64 * MIB;

const folder = mkdtempSync(join(tmpdir(), 'turnlog-disk-'));
const data = join(folder, 'data');
const ballast = join(folder, 'ballast');
const more = join(folder, 'more');

function mountSmall(): boolean {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${SIZE}`, 'tmpfs', folder], {
      stdio: 'ignore',
    });
    return true;
  } catch {
    return false;
  }
}
const mounted = mountSmall();

let server: ServerProcess;
let client: Client;
const agents: string[] = [];

async function start(): Promise<void> {
  server = startServerProcess({
    DATA_DIR: data,
    BOOTSTRAP_API_KEY: TEST_KEY,
    DISK_WARN_FREE: String(WARN),
    DISK_STOP_FREE: String(STOP),
  });
  client = apiClient(await server.ready, TEST_KEY);
  await eventually(health, ({ status }) => status === 200);
}
const health = () => client.get('/health/ready');
const create = (instruction = 'Be brief.') =>
  client.post('/v1/agents', { name: 'A', instruction, model: 'offline-echo' });
const freeBytes = (): number => {
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize;
};

/** Creates agents of 250 KB until the disk is found full; returns the last refusal. */
async function fill(): Promise<Reply> {
  let refused: Reply | undefined;
  for (;;) {
    const replies = await Promise.all(Array.from({ length: 8 }, () => create('x'.repeat(250_000))));
    for (const { body } of replies) if (body.success) agents.push(body.data.agent_id as string);
    refused = replies.find(({ status }) => status !== 200) ?? refused;
    if (refused && (await health()).body.data.disk?.state === 'full') return refused;
  }
}

/** Takes the space that SQLite returns now and then, so that the disk stays full. */
async function keepFull(): Promise<void> {
  appendFileSync(more, Buffer.alloc(Math.max(0, freeBytes() - STOP + MIB)));
  await eventually(
    () => create(),
    ({ body: { code } }) => code === 'storage_full',
  );
}

async function missingAgents(): Promise<string[]> {
  const missing: string[] = [];
  for (const id of agents) {
    const { status } = await client.get(`/v1/agents/${id}`);
    if (status !== 200) missing.push(`${id}: ${status}`);
  }
  return missing;
}

(mounted ? describe : describe.skip)('on a disk that fills up', () => {
  beforeAll(async () => {
    writeFileSync(ballast, Buffer.alloc(BALLAST));
    await start();
  }, 60_000);
  afterAll(async () => {
    server.kill('SIGKILL');
    await server.exited;
    execFileSync('umount', ['-l', folder]);
    rmSync(folder, { recursive: true, force: true });
  });

  test('new things are refused before it is full; reads, cancels and erasures continue; freed, it recovers, and nothing is lost', async () => {
    const agent = (await create()).body.data.agent_id as string;
    const session = (await client.post(`/v1/agents/${agent}/run`, { input: 'x' })).body.data
      .session_id as string;

    const refused = await fill();
    expectFailure(refused, 'storage_full');
    expect(refused.headers.get('retry-after')).toBe('30');
    expect(freeBytes()).toBeGreaterThan(STOP / 2);
    const { body } = await health();
    expect(body.data).toMatchObject({ status: 'degraded', disk: { folders: [{ folder: data }] } });
    expect(server.errors()).toContain('too little disk space is free');

    await keepFull();
    expectFailure(await client.post(`/v1/agents/${agent}/run`, { input: 'x' }), 'storage_full');
    expect((await client.get(`/v1/sessions/${session}`)).status).toBe(200);
    expect((await client.get(`/v1/sessions/${session}/events`)).status).toBe(200);
    expect((await client.post(`/v1/sessions/${session}/cancel`, {})).status).toBe(200);
    const erased = await client.send('DELETE', `/v1/sessions/${session}`, '');
    expect(erased).toMatchObject({ status: 200 });
    expectFailure(await client.get(`/v1/sessions/${session}`), 'session_erased');
    expect(await missingAgents()).toEqual([]);

    server.kill('SIGKILL');
    await server.exited;
    await start();
    await keepFull();
    expect(await missingAgents()).toEqual([]);

    rmSync(ballast);
    rmSync(more);
    await eventually(health, (reply) => reply.body.data.disk === undefined);
    expect((await create()).status).toBe(200);
    expect(server.errors()).toContain('enough disk space is free again');
    expect(await missingAgents()).toEqual([]);
    server.kill('SIGTERM');
    expect(await server.exited).toBe(0);
    expect(await misfitIn(data)).toBeUndefined();
  }, 180_000);
});
