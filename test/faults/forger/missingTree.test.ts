/** A forger deletes the transparency log, so that another one is signed over a forged history. */
import { existsSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { makeSigningKey } from '../../../services/compose/signingKeys.ts';
import { eventually } from '../../support/processes/operator.ts';
import { deployments, sizeOf, type Deployment } from '../../support/stores/forger/deployments.ts';

/** Changes the oldest agent, with a chain that fits. */
function forge({ forger }: Deployment): void {
  const [{ stream } = { stream: '' }] = forger.events('agent-');
  forger.rewrite(stream, 0, (event) => void (event.data['model'] = 'another'));
}

const kinds = await deployments();

describe.each(kinds)('a forger of $name', ({ openSigned }) => {
  let deployment: Deployment;
  beforeEach(async () => {
    deployment = await openSigned();
  }, 60_000);
  afterEach(() => deployment.close(), 60_000);

  test('who deletes the tree gets no other one signed, until an operator declares it', async () => {
    const before = (await deployment.checkpoint())!;
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

  test.each([
    ['checkpoint', 'The transparency log', /is missing/],
    ['hashes', 'Events can', /The transparency log has no tile\/0\/\d+/],
    ['state', 'Events can', /The transparency log has 0 leaves, and \d+ were signed\./],
  ] as const)(
    'who deletes the %s alone gets no other tree signed',
    async (part, beginning, reason) => {
      const before = (await deployment.checkpoint())!;
      await deployment.deleteTree(part);
      expect((await deployment.cli('audit', 'verify')).code).toBe(1);
      const service = await deployment.start();
      expect((await service.waiting(beginning)).body.error).toMatch(reason);
      expect(await deployment.checkpoint()).toBe(part === 'checkpoint' ? undefined : before);
      await service.stop();
    },
    120_000,
  );
});

/** The file of the key that signs. */
const keyFileOf = ({ env }: Deployment): string =>
  env['LOG_SIGNING_KEY_FILE'] ?? join(env.DATA_DIR, 'log-signing-key.pem');

// Those with a database are given their key file, and end without it: no service makes it.
describe.each(kinds.filter(({ name }) => !name.includes('PostgreSQL')))(
  '$name that has signed, without its tree and its key',
  ({ openSigned }) => {
    let deployment: Deployment;
    let key: string;
    let before: string;
    beforeEach(async () => {
      deployment = await openSigned();
      before = (await deployment.checkpoint())!;
      key = keyFileOf(deployment);
      await deployment.deleteTree();
      await rm(key);
    }, 60_000);
    afterEach(() => deployment.close(), 60_000);

    test('makes no key before an operator declares another tree, with another origin', async () => {
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
    }, 60_000);

    test('warns where its log is of an earlier release, which declares no tree', async () => {
      for (const { stream } of deployment.forger.events('log-')) deployment.forger.cut(stream);
      const service = await deployment.start();
      await service.ready();
      expect(service.logged()).toMatch(/"level":"warn".*no transparency log.*audit declare-tree/);
      expect((await service.health()).body.data).toMatchObject({
        status: 'degraded',
        transparency_log: { doubt: expect.stringContaining('audit declare-tree') },
      });
      await service.stop();
    }, 60_000);
  },
);

test.each(kinds)(
  'a signing key of $name that was taken away is reported, and nothing is signed',
  async ({ openSigned }) => {
    const deployment = await openSigned();
    try {
      const before = (await deployment.checkpoint())!;
      const file = keyFileOf(deployment);
      await rm(file);
      if ('DATABASE_URL' in deployment.env) {
        const error = `The signing key file ${file} can't be used: there is none.`;
        await expect(deployment.start()).rejects.toThrow(error);
        expect(await deployment.checkpoint()).toBe(before);
        return;
      }
      const service = await deployment.start();
      await service.ready();
      const { body } = await eventually(
        service.health,
        (answer) => answer.body.data?.transparency_log.trouble !== undefined,
      );
      const reason = 'its signing key file is missing';
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
      expect(existsSync(file)).toBe(false);
      await service.stop();
    } finally {
      await deployment.close();
    }
  },
  60_000,
);

test.each(kinds)(
  'a service of $name with another signing key does not serve, and signs nothing',
  async ({ openSigned }) => {
    const deployment = await openSigned();
    try {
      const before = (await deployment.checkpoint())!;
      const file = keyFileOf(deployment);
      const genuine = await readFile(file);
      await rm(file);
      makeSigningKey(file);
      const service = await deployment.start();
      expect((await service.waiting('Events can')).body.error).toContain(
        'was signed by none of the keys in the signing key file',
      );
      await eventually(
        async () => service.logged(),
        (log) =>
          /"level":"warn".*The transparency log can't be continued.*was not signed by a key of the signing key file/.test(
            log,
          ),
      );
      expect((await service.post('/v1/agents', {})).status).toBe(503);
      expect(await deployment.checkpoint()).toBe(before);
      await writeFile(file, genuine);
      await service.ready();
      await service.stop();
    } finally {
      await deployment.close();
    }
  },
  60_000,
);
