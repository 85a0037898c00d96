/**
 * Replicas behind the load balancer that is shipped, replaced one after the other under load: by
 * themselves, and by another release whose read models have another version.
 */
import { rm } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { openOperator, type Operator } from '../../services/compose/operator/operator.ts';
import { issueKey, revokeKey } from '../../shared/accounts/commands.ts';
import { parseConfig } from '../../shared/lib/config/config.ts';
import { SCOPES } from '../../shared/accounts/events.ts';
import { createLogger } from '../../shared/lib/logger.ts';
import {
  startEventStoreDbProcess,
  type EventStoreDbProcess,
} from '../support/servers/eventstoredb/eventStoreDbProcess.ts';
import { startScriptedModel, type ScriptedModel } from '../support/fakes/scriptedModel.ts';
import { apiClient, TEST_KEY, writeModelsFile } from '../support/http/service.ts';
import {
  createTestDatabase,
  type TestDatabase,
} from '../support/servers/postgres/postgresDatabase.ts';
import {
  startPostgresServer,
  withoutPostgres,
} from '../support/servers/postgres/postgresServer.ts';
import { withoutProgram } from '../support/processes/debianProgram.ts';
import { freePort } from '../support/processes/freePort.ts';
import { HAPROXY, startHaproxy } from '../support/processes/haproxy.ts';
import { copyAsOtherRelease } from '../support/processes/otherRelease.ts';
import { startServerProcess, type ServerProcess } from '../support/processes/serverProcess.ts';
import { temporaryFolder } from '../support/stores/sqlite/sqliteEventStore.ts';
import { size } from '../support/jest/size.ts';
import { testMasterKeyFile } from '../support/stores/masterKeyFile.ts';
import { testSigningKeyFile } from '../support/builders/signingKey.ts';

/** One second, as is promised; more where other work may hold this machine up. */
const REVOKED_WITHIN_MS = size({ small: 5_000, full: 1_000 });
const CLIENTS = 4;
const FIRST_ACCOUNT = 'acct_00000000000000000000000000';
const SYSTEM = { account_id: FIRST_ACCOUNT, key_id: 'operator', request_id: 'test' };
const postgres = await startPostgresServer();

interface Member {
  role: 'api' | 'projector';
  port: number;
  process: ServerProcess;
}

function suite(serverUrl: string): void {
  let folder: string;
  let database: TestDatabase;
  let eventStore: EventStoreDbProcess;
  let model: ScriptedModel;
  let operator: Operator;
  let env: Record<string, string>;
  let balancer: Awaited<ReturnType<typeof startHaproxy>>;
  let members: Member[];
  let other: Awaited<ReturnType<typeof copyAsOtherRelease>>;
  let load: { over: boolean; requests: number; violations: string[]; revocations: number };

  const start = ({ role, port }: Omit<Member, 'process'>, release?: string): ServerProcess =>
    startServerProcess({ ...env, PORT: String(port) }, ['--services', role], release);

  beforeEach(async () => {
    folder = await temporaryFolder();
    other = await copyAsOtherRelease();
    database = await createTestDatabase(serverUrl);
    eventStore = await startEventStoreDbProcess({ folder });
    model = await startScriptedModel(({ messages }) => ({
      text: `re: ${messages.at(-1)!.content}`,
    }));
    env = {
      EVENTSTOREDB_URL: eventStore.connectionString,
      DATABASE_URL: database.url,
      MASTER_KEY_FILE: testMasterKeyFile(),
      LOG_SIGNING_KEY_FILE: testSigningKeyFile(),
      MODELS_FILE: await writeModelsFile(folder, model.baseUrl),
      BOOTSTRAP_API_KEY: TEST_KEY,
      LOG_LEVEL: 'error',
      VISIBILITY_WAIT_MS: '30000',
      DRAIN_MS: '3000',
    };
    operator = await openOperator(parseConfig(env), createLogger('silent'));
    load = { over: false, requests: 0, violations: [], revocations: 0 };
    members = [];
  }, 120_000);
  afterEach(async () => {
    for (const { process } of members) process.kill('SIGKILL');
    await Promise.all(members.map(({ process }) => process.exited));
    await operator.close();
    await balancer.close();
    await model.close();
    await eventStore.kill('SIGTERM');
    await database.drop();
    await other.remove();
    await rm(folder, { recursive: true });
  });

  async function startAll(release?: string): Promise<void> {
    for (const role of ['projector', 'projector', 'api', 'api', 'api'] as const) {
      const port = await freePort();
      members.push({ role, port, process: start({ role, port }, release) });
    }
    const apis = members.filter(({ role }) => role === 'api');
    balancer = await startHaproxy(apis.map(({ port }) => port));
    await Promise.all(members.map(({ process }) => process.ready));
    for (const { port } of apis) await balancer.until(port, 'UP');
  }

  /** Ends them one after the other, and starts the release in their place. */
  async function replace(role: Member['role'], release?: string): Promise<void> {
    for (const member of members.filter((found) => found.role === role)) {
      const { port, process } = member;
      process.kill('SIGTERM');
      if (role === 'api') {
        const turnedAway = balancer.until(port, 'DOWN').then(() => 'turned away');
        expect(await Promise.race([turnedAway, process.exited])).toBe('turned away');
      }
      expect(await process.exited).toBe(0);
      // So long nobody is in its place, also of those that read what it has written.
      if (role === 'projector') await sleep(500);
      member.process = start(member, release);
      await member.process.ready;
      if (role === 'api') await balancer.until(port, 'UP');
    }
  }

  /** What a client expects of every request through the load balancer. */
  async function expectAnswer(
    { method = 'GET', path, body }: { method?: string; path: string; body?: object },
    shows: (data: any) => boolean = () => true,
  ): Promise<any> {
    load.requests += 1;
    const { get, send } = apiClient(balancer.url, TEST_KEY);
    try {
      const reply = body ? await send(method, path, body) : await get(path);
      if (reply.status === 200 && shows(reply.body.data)) return reply.body.data;
      load.violations.push(`${method} ${path}: ${JSON.stringify(reply.body).slice(0, 300)}`);
    } catch (error) {
      load.violations.push(`${method} ${path}: ${String((error as Error).cause ?? error)}`);
    }
    return undefined;
  }

  /** Writes, and reads what was written, wherever that is answered. */
  async function converse(name: string): Promise<void> {
    for (let call = 0; !load.over; call += 1) {
      const agent = await expectAnswer({
        method: 'POST',
        path: '/v1/agents',
        body: { name: `${name}-${call}`, instruction: 'Repeat.', model: 'scripted' },
      });
      if (!agent) continue;
      const { agent_id } = agent as { agent_id: string };
      for (let look = 0; look < 3; look += 1)
        await expectAnswer({ path: '/v1/agents' }, (agents: { agent_id: string }[]) =>
          agents.some((found) => found.agent_id === agent_id),
        );
      let session_id: string | undefined;
      for (let turn = 1; turn <= 3; turn += 1) {
        const run = await expectAnswer({
          method: 'POST',
          path: `/v1/agents/${agent_id}/run`,
          body: { input: `${turn}`, ...(session_id && { session_id }) },
        });
        if (!run) break;
        session_id = run.session_id as string;
        await expectAnswer(
          { path: `/v1/sessions/${session_id}` },
          ({ turns }: { turns: { output: string }[] }) =>
            turns.length === turn && turns.at(-1)!.output === `re: ${turn}`,
        );
      }
    }
  }

  /** Issues keys and revokes them, and uses each at every replica. */
  async function revokeKeys(): Promise<void> {
    const at = ({ port }: Member, key: string) =>
      apiClient(`http://127.0.0.1:${port}`, key)
        .get('/v1/models')
        .catch(() => undefined);
    const apis = members.filter(({ role }) => role === 'api');
    while (!load.over) {
      const { api_key, key_id } = await issueKey(operator, SYSTEM, {
        name: 'short',
        scopes: SCOPES,
        expiresAt: null,
      });
      // Replicas that have used it remember it; one that is being replaced has never seen it.
      await Promise.all(
        apis.map(async (api) => {
          for (let look = 0; look < 40 && (await at(api, api_key))?.status !== 200; look += 1)
            await sleep(50);
        }),
      );
      await revokeKey(operator, SYSTEM, key_id);
      await sleep(REVOKED_WITHIN_MS);
      const answers = await Promise.all(apis.map((api) => at(api, api_key)));
      for (const answer of answers)
        if (answer?.status === 200) load.violations.push('a revoked key was accepted');
      load.revocations += 1;
    }
  }

  async function underLoad(work: () => Promise<void>): Promise<void> {
    const clients = Array.from({ length: CLIENTS }, (_, index) => converse(`client${index}`));
    clients.push(revokeKeys());
    await sleep(1_000);
    await work();
    await sleep(1_000);
    load.over = true;
    await Promise.all(clients);
    expect(load.violations).toEqual([]);
    expect(load.revocations).toBeGreaterThan(0);
    expect(load.requests).toBeGreaterThan(100);
  }

  const TIMEOUT_MS = 600_000;

  test(
    'a rolling restart loses no request',
    async () => {
      await startAll();
      await underLoad(() => replace('api'));
    },
    TIMEOUT_MS,
  );

  test.each([
    ['api first', ['api', 'projector']],
    ['projector first', ['projector', 'api']],
  ] as const)(
    'a release with another version of the read models is rolled out, %s: no request fails, what was written is read, a revoked key is refused',
    async (_, order) => {
      await startAll(other.folder);
      await underLoad(async () => {
        for (const role of order) await replace(role);
      });
    },
    TIMEOUT_MS,
  );
}

if (!postgres) withoutPostgres('a rolling upgrade');
else if (HAPROXY === undefined) withoutProgram('a rolling upgrade', 'haproxy');
else describe('a rolling upgrade', () => suite(postgres.url));
afterAll(() => postgres?.close());
