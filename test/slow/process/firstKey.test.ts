import { createHash } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { startService } from '../../../services/compose/service.ts';
import { issueBootstrapKey } from '../../../services/process/startup/bootstrap.ts';
import type { RunningService } from '../../../services/process/start.ts';
import { hashApiKey } from '../../../shared/accounts/apiKey.ts';
import { openAccount } from '../../../shared/accounts/commands.ts';
import type { CommandContext } from '../../../shared/commandHandling/context.ts';
import { handle } from '../../../shared/commandHandling/handle.ts';
import { wholeStreamTarget } from '../../../shared/commandHandling/targetStream.ts';
import { parseConfig } from '../../../shared/lib/config/config.ts';
import { account } from '../../../shared/accounts/decider.ts';
import { recordedScopes, SCOPES } from '../../../shared/accounts/events.ts';
import { accountStream } from '../../../shared/eventlog/streams.ts';
import { createLogger } from '../../../shared/lib/logger.ts';
import { apiClient, TEST_KEY } from '../../support/http/service.ts';
import { asOperator } from '../../support/processes/operator.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';
import { PATIENT } from '../../support/processes/serverProcess.ts';

let folder: string;
let service: RunningService | undefined;
beforeEach(async () => {
  folder = await temporaryFolder();
});
afterEach(async () => {
  await service?.stop();
  service = undefined;
  await rm(folder, { recursive: true });
});

async function start(env: Record<string, string>): Promise<RunningService> {
  const config = parseConfig({
    DATA_DIR: folder,
    PORT: '0',
    LOG_LEVEL: 'silent',
    CONSOLE: 'off',
    ...PATIENT,
    ...env,
  });
  return (service = await startService(config, createLogger('silent'), {
    services: ['api', 'projector'],
    signal: new AbortController().signal,
  }));
}

const statusWith = async (key: string): Promise<number> =>
  (await apiClient(service!.url, key).get('/v1/agents')).status;

const issuedKeys = () =>
  asOperator(folder, async (operator) => {
    const readModels = await operator.readModels();
    const [first] = await readModels.listAccounts();
    const page = { limit: 10, bytes: 10_000 };
    return (await readModels.listApiKeys(first!.account_id, page)).rows;
  });

test('a key that the operator chose works, and its id in the log tells nothing of it', async () => {
  await start({ BOOTSTRAP_API_KEY: TEST_KEY });
  expect(await statusWith(TEST_KEY)).toBe(200);
  expect(await statusWith(`${TEST_KEY}x`)).toBe(401);
  const [key] = await issuedKeys();
  expect(key!.key_id).toMatch(/^key_01[0-9a-hjkmnp-tv-z]{24}$/);
  const digest = createHash('sha256').update(TEST_KEY).digest('hex');
  expect(key!.key_id).not.toContain(digest.slice(0, 8));
});

test('a weak key of an older release, whose id was made from it, works on, and can be revoked', async () => {
  const old = 'aaaaaaaaaaaaaaaa';
  const key_id = `key_0${hashApiKey(old).slice(0, 25)}`;
  await asOperator(folder, async (operator) => {
    const actor = { account_id: operator.ids.typeId('acct'), key_id: 'operator', request_id: 'x' };
    await openAccount(operator, actor, 'default');
    const issued = { key_id, name: 'bootstrap', hash: hashApiKey(old), ...recordedScopes(SCOPES) };
    const target = wholeStreamTarget(accountStream(actor.account_id), account);
    await handle(operator, actor, target, {
      type: 'issue_key',
      key: { ...issued, expires_at: null },
    });
  });
  await start({ BOOTSTRAP_API_KEY: TEST_KEY });
  expect([await statusWith(old), await statusWith(TEST_KEY)]).toEqual([200, 401]);
});

/** The keys that replicas with these keys issue, which begin at the same moment. */
const issuedAtOnce = (keys: (string | undefined)[]) =>
  asOperator(folder, async (operator) => {
    const readModels = await operator.readModels();
    const atOnce = { ...readModels, hasApiKeys: async () => false, untilShown: async () => true };
    const context = {
      ...operator,
      readModels: { ...atOnce, listParkedStreams: async () => [] },
      logger: createLogger('silent'),
      visibilityWaitMs: 1,
    } as unknown as CommandContext;
    const { signal } = new AbortController();
    const issued = await Promise.all(keys.map((key) => issueBootstrapKey(context, key, signal)));
    return issued.filter((key) => key !== undefined);
  });

test('replicas that begin at the same moment with the same key issue it once', async () => {
  expect(await issuedAtOnce([TEST_KEY, TEST_KEY, TEST_KEY])).toEqual([TEST_KEY]);
  expect((await issuedKeys()).length).toBe(1);
});

test('replicas that begin at the same moment without a key issue one', async () => {
  expect(await issuedAtOnce([undefined, undefined, undefined])).toHaveLength(1);
  expect((await issuedKeys()).length).toBe(1);
});
