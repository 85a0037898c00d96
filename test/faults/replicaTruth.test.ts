/** What replicas tell and do when a projector stands still, is gone, or a clock goes wrong. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { Client as PostgresClient } from 'pg';
import type { Client } from '../support/http/service.ts';
import {
  startPostgresServer,
  withoutPostgres,
} from '../support/servers/postgres/postgresServer.ts';
import { silenceableNetwork } from '../support/servers/postgres/silenceableNetwork.ts';
import { size } from '../support/jest/size.ts';
import { eventually } from '../support/processes/operator.ts';
import { clientOf, health, replicaProcesses } from '../support/processes/replicaProcesses.ts';
import { withClockAhead, type ServerProcess } from '../support/processes/serverProcess.ts';

/** What is promised is 10 s; other suites run beside the small size. */
const SOON_MS = size({ small: 60_000, full: 25_000 });
/** For as many answers as are asked for at once: each alone may wait longer for a database. */
const AT_ONCE_MS = size({ small: 10_000, full: 2_000 });
const GIVES_UP = 'gives up leadership';
const HOUR_MS = 3_600_000;
const postgres = await startPostgresServer();

const write = (client: Client) =>
  client.post('/v1/agents', { name: 'Test', instruction: 'Be brief.', model: 'scripted' });
const givingUp = ({ errors }: ServerProcess): number => errors().split(GIVES_UP).length - 1;

function suite(serverUrl: string): void {
  let replicas: Awaited<ReturnType<typeof replicaProcesses>>;
  beforeEach(async () => {
    replicas = await replicaProcesses(serverUrl);
  });
  afterEach(() => replicas.close());

  test('writes are shown again soon after the active projector has lost the event store, and only that', async () => {
    const network = await silenceableNetwork(replicas.eventStore.connectionString);
    const { api, active, standby } = await replicas.startThree(network.url);
    expect((await write(api)).headers.get('x-turnlog-visible')).toBeNull();
    const began = performance.now();
    network.cut();
    const late: boolean[] = [];
    const { body } = await eventually(
      () => write(api),
      ({ headers, status }) => {
        expect(status).toBe(200);
        late.push(headers.get('x-turnlog-visible') === 'false');
        return performance.now() - began > 1_000 && late.at(-1) === false;
      },
    );
    expect(performance.now() - began).toBeLessThan(SOON_MS);
    expect(late[0]).toBe(true);
    expect((await api.get(`/v1/agents/${body.data.agent_id}`)).status).toBe(200);
    expect((await health(await clientOf(standby))).projector.state).toBe('active');
    expect([givingUp(active), givingUp(standby)]).toEqual([1, 0]);
    active.kill('SIGKILL');
    await active.exited;
    await network.close();
  }, 120_000);

  test('projectors that all have lost the event store don’t take the place from each other, and go on when it is back', async () => {
    const { api, active, standby } = await replicas.startThree();
    replicas.eventStore.signal('SIGSTOP');
    await sleep(30_000);
    expect(givingUp(active)).toBe(1);
    expect(givingUp(standby)).toBeLessThanOrEqual(1);
    replicas.eventStore.signal('SIGCONT');
    await eventually(
      () => write(api),
      ({ status, headers }) => status === 200 && !headers.has('x-turnlog-visible'),
    );
    await eventually(
      () => health(api),
      (data) => data?.projection.caught_up === true,
    );
  }, 120_000);

  test('an api tells that no projector is there, within a second or so of the time allowed, at once, and that one is again', async () => {
    const { api, active, standby } = await replicas.startThree();
    await eventually(
      () => health(api),
      (data) => data?.projection.caught_up === true,
    );
    for (const projector of [active, standby]) projector.kill('SIGSTOP');
    const began = performance.now();
    const told = await eventually(
      () => health(api),
      (data) => data?.status === 'degraded',
    );
    expect(performance.now() - began).toBeLessThan(SOON_MS);
    expect(told.projection).toMatchObject({
      caught_up: false,
      lag_events: null,
      reason: expect.stringContaining('No projector keeps the read models up to date'),
    });
    expect(told.projection.lag_ms).toBeGreaterThan(5_000);
    expect((await write(api)).headers.get('x-turnlog-visible')).toBe('false');
    const asked = performance.now();
    await Promise.all(Array.from({ length: 20 }, () => health(api)));
    expect(performance.now() - asked).toBeLessThan(AT_ONCE_MS);
    standby.kill('SIGCONT');
    await eventually(
      () => health(api),
      (data) => data?.status === 'ready',
    );
  }, 120_000);

  test('an api tells that the projector can not write, once there is something to write', async () => {
    const { api } = await replicas.startThree();
    const blocker = new PostgresClient({ connectionString: replicas.databaseUrl });
    await blocker.connect();
    await blocker.query('BEGIN; SELECT FROM turnlog.projections FOR UPDATE');
    expect((await write(api)).headers.get('x-turnlog-visible')).toBe('false');
    const told = await eventually(
      () => health(api),
      (data) => data?.status === 'degraded',
    );
    expect(told.projection).toMatchObject({ caught_up: false, reason: expect.any(String) });
    expect(told.projection.lag_ms).toBeGreaterThan(5_000);
    await blocker.end();
    await eventually(
      () => health(api),
      (data) => data?.status === 'ready',
    );
  }, 120_000);

  test.each([
    ['ahead', HOUR_MS],
    ['behind', -HOUR_MS],
  ])(
    'an api whose clock is an hour %s interrupts nobody’s runs, and is not interrupted',
    async (_name, ms) => {
      const wrong = await clientOf(replicas.start('api,projector', withClockAhead(ms)));
      const right = await clientOf(replicas.start('api'));
      const agent = (await write(right)).body.data.agent_id as string;
      const runs = await Promise.all(
        [wrong, right, wrong, right].map((client) =>
          client.post(`/v1/agents/${agent}/run`, { input: 'slow' }),
        ),
      );
      expect(runs.map(({ status, body }) => [status, body.code])).toEqual(
        runs.map(() => [200, undefined]),
      );
    },
    120_000,
  );
}

if (postgres) {
  describe('replicas', () => suite(postgres.url));
  afterAll(postgres.close);
} else {
  withoutPostgres('replicas');
}
