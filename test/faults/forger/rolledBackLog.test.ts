/**
 * A forger puts an older copy of the whole storage back: the log, its tree, its checkpoint and the
 * read models fit together then, and only others can know that there was more.
 */
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { eventually } from '../../support/processes/operator.ts';
import {
  startTestWitness,
  writeWitnessesFile,
  type TestWitness,
} from '../../support/servers/witness/witness.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';
import { deployments, sizeOf, type Deployment } from '../../support/stores/forger/deployments.ts';

const kinds = await deployments();

describe.each(kinds)('$name that was rolled back as a whole', ({ openSigned }) => {
  let deployment: Deployment;
  let folder: string;
  let witness: TestWitness;
  let vkey: string;
  beforeEach(async () => {
    folder = await temporaryFolder();
    vkey = '';
    witness = await startTestWitness('witness.test/w', () => vkey);
    deployment = await openSigned();
  }, 60_000);
  afterEach(async () => {
    await deployment.close();
    await witness.close();
    await rm(folder, { recursive: true });
  }, 60_000);

  /** Saves, signs more, and rolls back. Resolves with both newest checkpoints. */
  async function rollBack(env: Record<string, string> = {}): Promise<[string, string]> {
    const before = (await deployment.checkpoint())!;
    await deployment.save('older');
    const { out } = await deployment.cli('audit', 'vkey');
    vkey = out.trim();
    const service = await deployment.start(env);
    await service.ready();
    await service.write();
    await service.stop();
    const after = (await deployment.checkpoint())!;
    await deployment.putBack('older');
    expect(await deployment.checkpoint()).toBe(before);
    return [before, after];
  }

  /** What both outside parties have to lead to. */
  async function expectRefusal(
    env: Record<string, string>,
    source: string,
    [before, after]: [string, string],
  ): Promise<void> {
    const reason = `The log was rolled back: ${source} knows a checkpoint of ${sizeOf(after)} entries of ${after.split('\n')[0]}, and the transparency log has ${sizeOf(before)}.`;
    const verified = await deployment.cliWith(env, 'audit', 'verify');
    expect(verified).toMatchObject({ code: 1, out: expect.stringContaining(reason) });
    const service = await deployment.start(env);
    const { status, body } = await service.waiting('The log was rolled back');
    expect([status, body.error]).toEqual([503, expect.stringContaining(reason)]);
    expect(service.logged()).toContain(`the start waits: ${reason}`);
    expect((await service.post('/v1/agents', {})).status).toBe(503);
    expect(await deployment.checkpoint()).toBe(before);

    const declared = ['log', 'accept-restored', '--reason', 'restored on purpose'];
    expect((await deployment.cli(...declared)).code).toBe(0);
    await service.ready();
    const next = await eventually(
      async () => (await deployment.checkpoint())!,
      (note) => note !== before && sizeOf(note) > 0,
    );
    expect(next.split('\n')[0]).not.toBe(before.split('\n')[0]);
    await service.stop();
  }

  test('does not start where a kept checkpoint is larger, until it is declared restored', async () => {
    const kept = join(folder, 'kept');
    await mkdir(kept);
    const checkpoints = await rollBack();
    const file = join(kept, '2026-11-25.checkpoint');
    await writeFile(join(kept, '2026-11-24.checkpoint'), checkpoints[0]);
    await writeFile(file, checkpoints[1]);
    await expectRefusal({ LOG_KEPT_CHECKPOINTS: kept }, file, checkpoints);
  }, 120_000);

  test('does not start where a witness has cosigned more, until it is declared restored', async () => {
    const env = { LOG_WITNESSES_FILE: await writeWitnessesFile(folder, [witness]) };
    const checkpoints = await rollBack(env);
    expect(witness.head().size).toBe(sizeOf(checkpoints[1]));
    await expectRefusal(env, 'the witness witness.test/w', checkpoints);
    expect(witness.head().size).toBe(sizeOf(checkpoints[1]));
  }, 120_000);

  test('does not start where its tree alone is older than a kept checkpoint; without it, it is made again', async () => {
    const [before] = await rollBack();
    const kept = join(folder, 'kept.checkpoint');
    const first = await deployment.start();
    await first.ready();
    await first.write();
    await first.stop();
    await writeFile(kept, (await deployment.checkpoint())!);
    await deployment.putBack('older', 'without its log');
    expect(await deployment.checkpoint()).toBe(before);
    const env = { LOG_KEPT_CHECKPOINTS: kept };
    const held = await deployment.start(env);
    expect((await held.waiting('The log was rolled back')).body.error).toContain(kept);
    await held.stop();
    const service = await deployment.start();
    await service.ready();
    await service.write();
    await service.stop();
    expect(await deployment.cliWith(env, 'audit', 'verify')).toMatchObject({ code: 0 });
  }, 120_000);

  test('is not noticed without them: the storage is what it once was', async () => {
    const [before] = await rollBack();
    expect((await deployment.cli('audit', 'verify')).code).toBe(0);
    const service = await deployment.start();
    await service.ready();
    expect(await deployment.checkpoint()).toBe(before);
    await service.stop();
  }, 120_000);
});

test('a witness and an address that do not answer delay a start by seconds, and are logged', async () => {
  const deployment = await kinds[0]!.openSigned();
  const folder = await temporaryFolder();
  const witness = await startTestWitness('witness.test/w', () => '');
  try {
    witness.use(() => new Promise(() => undefined));
    const file = await writeWitnessesFile(folder, [witness]);
    const env = {
      LOG_WITNESSES_FILE: file,
      LOG_KEPT_CHECKPOINTS: `${witness.url}/kept,${join(folder, 'missing')}`,
    };
    const service = await deployment.start(env);
    const began = performance.now();
    await service.ready();
    expect(performance.now() - began).toBeLessThan(15_000);
    expect(service.logged()).toContain(
      '"source":"witness.test/w","reason":"did not answer within 2 s"',
    );
    expect(service.logged()).toContain('can’t be read (ENOENT)');
    expect(service.logged()).toContain(`"source":"${witness.url}/kept","reason":"answers with`);
    await service.stop();
  } finally {
    await deployment.close();
    await witness.close();
    await rm(folder, { recursive: true });
  }
}, 60_000);
