/** Turns that run in one process, and are cancelled or waited for at another one. */
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { HOSTILE } from '../support/fakes/mcpGroups.ts';
import { expectFailure } from '../support/http/failures.ts';
import type { Client } from '../support/http/service.ts';
import { cutConnections } from '../support/servers/postgres/postgresDatabase.ts';
import {
  startPostgresServer,
  withoutPostgres,
} from '../support/servers/postgres/postgresServer.ts';
import { eventually } from '../support/processes/operator.ts';
import { clientOf, replicaProcesses } from '../support/processes/replicaProcesses.ts';
import type { ServerProcess } from '../support/processes/serverProcess.ts';
import { temporaryFolder } from '../support/stores/sqlite/sqliteEventStore.ts';
import { size } from '../support/jest/size.ts';

/** What is promised is a second; other suites run beside the small size. */
const SOON_MS = size({ small: 5_000, full: 1_000 });
const ROUNDS = size({ small: 5, full: 50 });
const postgres = await startPostgresServer();

function suite(serverUrl: string): void {
  let replicas: Awaited<ReturnType<typeof replicaProcesses>>;
  let processes: Record<'owner' | 'other' | 'projector', ServerProcess>;
  let owner: Client;
  let other: Client;
  let agent: string;

  beforeEach(async () => {
    replicas = await replicaProcesses(serverUrl);
    const { start } = replicas;
    processes = { projector: start('projector'), owner: start('api'), other: start('api') };
    [owner, other] = [await clientOf(processes.owner), await clientOf(processes.other)];
    const body = { name: 'Test', instruction: 'Be brief.', model: 'scripted' };
    agent = (await owner.post('/v1/agents', body)).body.data.agent_id as string;
    replicas.model.use({ fault: 'never_answer' });
  }, 120_000);
  afterEach(() => replicas.close());

  const run = (client: Client, prefer = 'respond-async', session_id?: string) =>
    client.post(
      `/v1/agents/${agent}/run`,
      { input: 'hi', ...(session_id && { session_id }) },
      { prefer },
    );
  const turnOf = (client: Client, session: string, turn = 1, prefer = '') =>
    client.get(`/v1/sessions/${session}/turns/${turn}`, { prefer });
  const cancel = (client: Client, session: string) =>
    client.post(`/v1/sessions/${session}/cancel`, '');

  test('a run is cancelled at the other replica: its model is left within a second, and everybody is told', async () => {
    const { model } = replicas;
    const { session_id: session } = (await run(owner)).body.data;
    await model.received(1);
    await cancel(other, session);
    await model.abandoned(1);
    const took: number[] = [];
    for (let turn = 2; turn <= ROUNDS + 1; turn += 1) {
      const running = run(owner, '', session);
      await model.received(turn);
      const waiting = turnOf(owner, session, turn, 'wait=60');
      const began = performance.now();
      const cancelling = cancel(other, session);
      await model.abandoned(turn);
      took.push(Math.round(performance.now() - began));
      expect((await cancelling).body.data).toMatchObject({ turn, cancelled: true });
      expect(expectFailure(await running, 'turn_interrupted').error).toContain('cancelled');
      for (const { body } of [await waiting, await turnOf(other, session, turn)])
        expect(body.data).toMatchObject({
          status: 'interrupted',
          error: { code: 'turn_interrupted', reason: 'cancelled' },
        });
    }
    process.stderr.write(
      `cancelled at another replica, ms until the model was left: ${took.join(' ')}\n`,
    );
    expect(Math.max(...took)).toBeLessThan(SOON_MS);
  }, 240_000);

  test('one whose signals were cut a moment ago is found to be cancelled all the same', async () => {
    const session = (await run(owner)).body.data.session_id as string;
    await replicas.model.received(1);
    await cutConnections(replicas.databaseUrl, 'broadcast');
    await cancel(other, session);
    const began = performance.now();
    await replicas.model.abandoned(1);
    expect(performance.now() - began).toBeLessThan(Math.max(SOON_MS, 4_000));
  }, 120_000);

  test('without a projector, turns are told and cancelled as they are recorded', async () => {
    const session = (await run(owner)).body.data.session_id as string;
    await replicas.model.received(1);
    processes.projector.kill('SIGKILL');
    await processes.projector.exited;
    const waiting = turnOf(other, session, 1, 'wait=60');
    const began = performance.now();
    const cancelling = cancel(other, session);
    await replicas.model.abandoned(1);
    expect(performance.now() - began).toBeLessThan(SOON_MS);
    expect((await waiting).body.data.status).toBe('interrupted');
    expect((await cancelling).body.data.cancelled).toBe(true);
    replicas.model.use({ text: 'Next.' });
    const next = (await run(owner, 'respond-async', session)).body.data;
    expect(next).toMatchObject({ turn: 2, status: 'running' });
    const { data } = (await turnOf(other, session, 2, 'wait=60')).body;
    expect(data).toMatchObject({ status: 'completed', output: 'Next.' });
  }, 120_000);

  test('tool calls that have ended are recorded before a cancellation at the other replica', async () => {
    const folder = await temporaryFolder();
    try {
      const [tools, noted] = [join(folder, 'tools.json'), join(folder, 'noted')];
      const server = { command: process.execPath, args: [HOSTILE, 'plain', noted] };
      await writeFile(
        tools,
        JSON.stringify({ builtin: ['clock'], mcp_servers: { noted: server } }),
      );
      const env = { TOOLS_FILE: tools, VISIBILITY_WAIT_MS: '20000' };
      const [caller, canceller] = [replicas.start('api', env), replicas.start('api', env)];
      [owner, other] = [await clientOf(caller), await clientOf(canceller)];
      const config = { name: 'Test', instruction: 'Be brief.', model: 'scripted' };
      const created = await eventually(
        () => owner.post('/v1/agents', { ...config, tool: 'clock,mcp:noted' }),
        ({ status }) => status === 200,
      );
      agent = created.body.data.agent_id as string;
      const clockCall = (id: string) => ({ id, name: 'clock', arguments: '{}' });
      const hanging = { id: 'c0', name: 'noted__act', arguments: '{"what":"hang"}' };
      replicas.model.use({ tool_calls: [hanging, ...['c1', 'c2', 'c3'].map(clockCall)] });
      const session = (await run(owner)).body.data.session_id as string;
      // The other calls end at once.
      await eventually(
        () => readFile(noted, 'utf8').catch(() => ''),
        (calls) => calls === 'called\n',
      );
      const began = performance.now();
      expect((await cancel(other, session)).body.data.cancelled).toBe(true);
      expect(performance.now() - began).toBeLessThan(SOON_MS);
      const { data } = (await other.get(`/v1/sessions/${session}/events`)).body;
      expect(data.map(({ type, data: { call_id } }: any) => [type, call_id?.text])).toEqual([
        ['session.started.v1', undefined],
        ['session.turn_started.v1', undefined],
        ...['c1', 'c2', 'c3'].map((id) => ['session.tool_called.v1', id]),
        ['session.turn_interrupted.v1', undefined],
      ]);
    } finally {
      await rm(folder, { recursive: true });
    }
  }, 120_000);

  test('the end of a run in the background is told at the other replica within a second', async () => {
    const { promise, resolve: answer } = Promise.withResolvers<void>();
    replicas.model.use(async () => {
      await promise;
      return { text: 'Done.' };
    });
    const session = (await run(owner)).body.data.session_id as string;
    const waiting = turnOf(other, session, 1, 'wait=60');
    await sleep(500);
    const began = performance.now();
    answer();
    expect((await waiting).body.data.output).toBe('Done.');
    expect(performance.now() - began).toBeLessThan(SOON_MS);
  }, 120_000);

  test('a turn whose owner hangs is cancelled, the session goes on elsewhere, and what the owner says later is dropped', async () => {
    const { promise, resolve: answer } = Promise.withResolvers<void>();
    replicas.model.use(async () => {
      await promise;
      return { text: 'Too late.' };
    });
    const running = run(owner, '');
    await replicas.model.received(1);
    const [{ session_id: session }] = (await other.get('/v1/sessions')).body.data;
    processes.owner.kill('SIGSTOP');
    answer();
    const began = performance.now();
    expect((await cancel(other, session)).body.data.cancelled).toBe(true);
    expect(performance.now() - began).toBeLessThan(1_000 + SOON_MS);
    replicas.model.use({ text: 'Next.' });
    expect((await run(other, '', session)).body.data.output).toBe('Next.');
    processes.owner.kill('SIGCONT');
    expectFailure(await running, 'turn_interrupted');
    const { turns } = (await other.get(`/v1/sessions/${session}`)).body.data;
    expect(turns.map(({ status, output }: any) => [status, output])).toEqual([
      ['interrupted', null],
      ['completed', 'Next.'],
    ]);
  }, 120_000);

  test('a run in the background whose process is killed is told as interrupted once it is known to be dead', async () => {
    const session = (await run(owner)).body.data.session_id as string;
    processes.owner.kill('SIGKILL');
    await processes.owner.exited;
    const { data } = (await turnOf(other, session, 1, 'wait=60')).body;
    expect(data).toMatchObject({
      status: 'interrupted',
      error: { code: 'turn_interrupted', reason: 'crash' },
    });
  }, 120_000);
}

if (postgres) {
  describe('two API replicas and a projector', () => suite(postgres.url));
  afterAll(postgres.close);
} else {
  withoutPostgres('two API replicas and a projector');
}
