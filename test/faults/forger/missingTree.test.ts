/** A forger deletes the transparency log, so that another one is signed over a forged history. */
import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { makeSigningKey } from '../../../services/compose/signingKeys.ts';
import { eventually } from '../../support/processes/operator.ts';
import { deployments, sizeOf, type Deployment } from '../../support/stores/forger/deployments.ts';
import { startPostgresServer } from '../../support/servers/postgres/postgresServer.ts';

const server = await startPostgresServer();
afterAll(() => server?.close());

/** Writes and signs some events, and stops. Resolves with the newest checkpoint. */
async function signSome(deployment: Deployment): Promise<string> {
  const service = await deployment.start();
  await service.ready();
  await service.write();
  // The read models know the hash of the last event, so a forger leaves that one alone.
  await service.write();
  await service.stop();
  return (await deployment.checkpoint())!;
}

/** Changes the oldest agent, with a chain that fits. */
function forge({ forger }: Deployment): void {
  const [{ stream } = { stream: '' }] = forger.events('agent-');
  forger.rewrite(stream, 0, (event) => void (event.data['model'] = 'another'));
}

describe.each(deployments(server?.url))('a forger of $name', ({ open }) => {
  let deployment: Deployment;
  beforeEach(async () => {
    deployment = await open();
  }, 60_000);
  afterEach(() => deployment.close(), 60_000);

  test('who deletes the tree gets no other one signed, until an operator declares it', async () => {
    const before = await signSome(deployment);
    const [origin] = before.split('\n');
    const declared = deployment.forger.events('log-');
    expect(declared).toEqual([
      expect.objectContaining({ type: 'log.tree_declared.v1', data: expect.anything() }),
    ]);
    expect(declared[0]!.data).toMatchObject({ origin, vkeys: [expect.stringContaining('+')] });
    forge(deployment);
    expect((await deployment.cli('audit', 'verify')).code).toBe(1);
    await deployment.deleteTree();

    const verified = await deployment.cli('audit', 'verify');
    expect(verified).toMatchObject({
      code: 1,
      out: expect.stringContaining(`The transparency log ${origin} is missing`),
    });
    const service = await deployment.start();
    const { status, body } = await service.waiting('The transparency log');
    expect([status, body.error]).toEqual([
      503,
      expect.stringContaining(`The transparency log ${origin} is missing`),
    ]);
    expect(service.logged()).toContain('the start waits: The transparency log');
    expect((await service.post('/v1/agents', {})).status).toBe(503);
    expect(await deployment.checkpoint()).toBeUndefined();

    const { code, out } = await deployment.cli('audit', 'declare-tree', '--reason', 'a disk broke');
    expect([code, out]).toEqual([0, expect.stringContaining(`It replaces: ${origin}.`)]);
    await service.ready();
    await service.write();
    const after = (await deployment.checkpoint())!;
    expect(after.split('\n')[0]).not.toBe(origin);
    expect(sizeOf(after)).toBeGreaterThan(sizeOf(before));
    expect((await deployment.cli('audit', 'verify')).code).toBe(0);
    await service.stop();
  }, 120_000);

  test('who deletes the checkpoint alone gets no other one signed', async () => {
    await signSome(deployment);
    await deployment.deleteTree('checkpoint');
    expect((await deployment.cli('audit', 'verify')).code).toBe(1);
    const service = await deployment.start();
    expect((await service.waiting('The transparency log')).body.error).toContain('is missing');
    expect(await deployment.checkpoint()).toBeUndefined();
    await service.stop();
  }, 120_000);
});

/** An embedded service that has signed, without its tree and its key. */
async function withoutTreeAndKey(
  work: (deployment: Deployment, key: string, before: string) => Promise<void>,
): Promise<void> {
  const [{ open } = { open: undefined }] = deployments(undefined);
  const deployment = await open!();
  try {
    const before = await signSome(deployment);
    const key = join(deployment.env['DATA_DIR']!, 'log-signing-key.pem');
    await deployment.deleteTree();
    await rm(key);
    await work(deployment, key, before);
  } finally {
    await deployment.close();
  }
}

test(
  'without tree and signing key no key is made before an operator declares another tree, with another origin',
  () =>
    withoutTreeAndKey(async (deployment, key, before) => {
      const service = await deployment.start();
      const { body } = await service.waiting('The transparency log');
      expect(body.error).toContain('audit declare-tree --reason');
      expect([existsSync(key), await deployment.checkpoint()]).toEqual([false, undefined]);
      expect((await deployment.cli('audit', 'declare-tree', '--reason', 'lost')).code).toBe(0);
      await service.ready();
      await service.write();
      const origin = (note: string): string => note.split('\n')[0]!;
      expect(origin((await deployment.checkpoint())!)).not.toBe(origin(before));
      await service.stop();
    }),
  60_000,
);

test(
  'a log of an earlier release, which declares no tree, is warned of where tree and key are gone',
  () =>
    withoutTreeAndKey(async (deployment) => {
      const log = new DatabaseSync(join(deployment.env['DATA_DIR']!, 'events.db'));
      log.exec(`DELETE FROM events WHERE stream LIKE 'log-%'`);
      log.close();
      const service = await deployment.start();
      await service.ready();
      expect(service.logged()).toMatch(/"level":"warn".*no transparency log.*audit declare-tree/);
      expect((await service.health()).body.data).toMatchObject({
        status: 'degraded',
        transparency_log: { doubt: expect.stringContaining('audit declare-tree') },
      });
      await service.stop();
    }),
  60_000,
);

test.each(['taken away', 'exchanged'])(
  'a signing key that was %s is told in health and warned of, and nothing is signed',
  async (what) => {
    const [{ open } = { open: undefined }] = deployments(undefined);
    const deployment = await open!();
    try {
      const before = await signSome(deployment);
      const file = join(deployment.env['DATA_DIR']!, 'log-signing-key.pem');
      await rm(file);
      if (what === 'exchanged') makeSigningKey(file);
      const service = await deployment.start();
      await service.ready();
      const { body } = await eventually(
        service.health,
        (answer) => answer.body.data?.transparency_log.trouble !== undefined,
      );
      const reason =
        what === 'exchanged'
          ? 'was not signed by a key of the signing key file'
          : 'its signing key file is missing';
      expect(body.data).toMatchObject({
        status: 'degraded',
        transparency_log: { trouble: expect.stringContaining(reason) },
      });
      expect(service.logged()).toMatch(
        new RegExp(`"level":"warn".*The transparency log can't be continued.*${reason}`),
      );
      await service.post('/v1/agents', { name: 'a', instruction: 'i', model: 'offline-echo' });
      await sleep(1_000);
      expect(await deployment.checkpoint()).toBe(before);
      expect(existsSync(file)).toBe(what === 'exchanged');
      await service.stop();
    } finally {
      await deployment.close();
    }
  },
  60_000,
);
