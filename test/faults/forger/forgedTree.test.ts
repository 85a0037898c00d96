/** A forger rewrites the transparency log together with the log, also signed with the log's key. */
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { eventually } from '../../support/processes/operator.ts';
import {
  startTestWitness,
  writeWitnessesFile,
  type TestWitness,
} from '../../support/servers/witness/witness.ts';
import type { Position } from '../../../shared/ports/eventStore.ts';
import { formatCheckpoint } from '../../../shared/transparency/tlog/checkpoint.ts';
import { leafEntry } from '../../../shared/transparency/tlog/leaf.ts';
import { signNote } from '../../../shared/transparency/tlog/note.ts';
import { formatVkey, noteSigner } from '../../../shared/transparency/tlog/noteKeys.ts';
import { openRightEdge } from '../../../shared/transparency/tlog/rightEdge.ts';
import { signingKey } from '../../support/builders/prover.ts';
import { memoryTiles } from '../../support/fakes/memoryTiles.ts';
import { deployments, sizeOf, type Deployment } from '../../support/stores/forger/deployments.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

describe.each(await deployments())('on $name', ({ openSigned }) => {
  let deployment: Deployment;
  let folder: string;
  let witness: TestWitness;
  let vkey: string;
  beforeEach(async () => {
    vkey = '';
    [deployment, folder] = await Promise.all([openSigned(), temporaryFolder()]);
    witness = await startTestWitness('witness.test/w', () => vkey);
  }, 60_000);
  afterEach(async () => {
    await deployment.close();
    await witness.close();
    await rm(folder, { recursive: true });
  }, 60_000);

  /** The newest checkpoint. */
  const checkpoint = async (): Promise<string> => (await deployment.checkpoint())!;

  /** Writes and signs two more events, and stops. Resolves with the checkpoint. */
  async function sign(env: Record<string, string> = {}): Promise<string> {
    const service = await deployment.start(env);
    await service.ready();
    await service.write();
    await service.write();
    await service.stop();
    return checkpoint();
  }

  test('an entry that was changed with its event is named by the service, export and verification', async () => {
    const first = await deployment.start();
    await first.ready();
    const agent = { name: 'a', instruction: 'i', model: 'offline-echo' };
    const { agent_id } = (await first.post('/v1/agents', agent)).body.data;
    const { body } = await first.post(`/v1/agents/${agent_id}/run`, { input: 'Hi.' });
    const session = body.data.session_id as string;
    await first.write();
    await first.stop();
    const stream = `session-${session}`;
    const hashOf = (): string => deployment.forger.read(stream, 2).metadata['hash'] as string;
    const hash = hashOf();
    deployment.forger.rewrite(stream, 2, ({ data }) => void (data['finish_reason'] = 'forged'));
    await deployment.replaceHash(hash, hashOf());

    const service = await deployment.start();
    await service.ready();
    for (const part of ['events', 'proof']) {
      const reply = await service.get(`/v1/sessions/${session}/${part}`);
      expect([part, reply.status, reply.body.code]).toEqual([part, 409, 'stream_damaged']);
    }
    const { damaged_streams } = (await service.health()).body.data;
    expect(damaged_streams).toMatchObject([{ stream, last_revision: 2 }]);
    expect(service.logged()).toContain('does not lead to what was signed');
    const out = join(folder, 'never.tar');
    for (const args of [['export', '--session', session, '--out', out], ['verify']])
      expect((await deployment.cli('audit', ...args)).code).toBe(1);
    await service.stop();
  }, 120_000);

  test('leaves that no checkpoint covers, and that are not those of the log, are not signed', async () => {
    const before = await checkpoint();
    const { length } = deployment.forger.events('agent-');
    await sign();
    await deployment.putCheckpoint(before);
    // The read models know the hash of the last event.
    const { stream } = deployment.forger.events('agent-')[length]!;
    deployment.forger.rewrite(stream, 0, ({ data }) => void (data['model'] = 'another'));
    const service = await deployment.start();
    await service.ready();
    const { body } = await eventually(
      service.health,
      (reply) => reply.body.data?.transparency_log.trouble !== undefined,
    );
    expect(body.data.transparency_log.trouble).toContain('are not those of the event log');
    expect(await deployment.checkpoint()).toBe(before);
    await service.stop();
  }, 120_000);

  /** Changes an agent and its chain, and the rows of the read models. Resolves with the event. */
  async function forge(at = 0) {
    const { forger } = deployment;
    const { stream } = forger.events('agent-')[at]!;
    forger.rewrite(stream, 0, ({ data }) => void (data['model'] = 'another'));
    expect((await deployment.cli('projections', 'rebuild')).code).toBe(0);
    return forger.read(stream, 0);
  }
  const hashes = (): string[] =>
    deployment.forger.events().map(({ metadata }) => metadata['hash'] as string);

  test.each([
    ['an empty tree is named as the newest', 'evil/x', false],
    ['a tree of the forged log, which was not signed, is named as the newest', 'evil/x', true],
    ['the tree is made again of the forged log, and its checkpoint is deleted', '', true],
  ])(
    'a forged log is noticed where %s',
    async (_what, evil, isBuilt) => {
      const [own = ''] = (await checkpoint()).split('\n');
      const { id } = await forge();
      if (isBuilt) await deployment.buildTree(evil || own, hashes());
      if (evil === '') await deployment.deleteTree('checkpoint');
      else await deployment.openAnother(evil);
      const reason = evil === '' ? `The transparency log ${own} is missing` : `The event ${id} `;
      for (const part of ['audit', 'projections'])
        expect(await deployment.cli(part, 'verify')).toMatchObject({
          code: 1,
          out: expect.stringContaining(reason),
        });
    },
    120_000,
  );

  /** Replaces the declared key, and signs the tree of the forged log with the new one. */
  async function signAs(origin: string): Promise<void> {
    const { forger } = deployment;
    const signer = noteSigner(origin, signingKey());
    const [{ stream, revision } = { stream: '', revision: 0 }] = forger.events('log-');
    const vkeys = [formatVkey(signer.key)];
    forger.rewrite(stream, revision, ({ data }) => void Object.assign(data, { vkeys }));
    const leaves = hashes();
    await deployment.buildTree(origin, leaves);
    const edge = await openRightEdge(memoryTiles(), 0);
    for (const [index, hash] of leaves.entries()) edge.append(leafEntry(hash, index));
    const text = formatCheckpoint({ origin, size: leaves.length, root: edge.root() });
    await deployment.putCheckpoint(signNote(text, [signer]));
    await deployment.changeState({ last: { event_hash: leaves.at(-1)! } });
  }

  test.each([
    'another tree is named as the newest',
    'it has a leaf behind those that were signed',
    'an earlier checkpoint is put back',
  ])(
    'a service takes no forged event where %s',
    async (what) => {
      const earlier = await checkpoint();
      const [origin = ''] = earlier.split('\n');
      const { length } = deployment.forger.events('agent-');
      await sign();
      const leaves = hashes();
      // The read models know the hash of the last event.
      const { id, stream, metadata } = await forge(length);
      const event_hash = metadata['hash'] as string;
      if (what.startsWith('another')) await deployment.openAnother('evil/x');
      else if (what.startsWith('an earlier')) await deployment.putCheckpoint(earlier);
      else {
        await deployment.buildTree(origin, [...leaves, event_hash]);
        await deployment.changeState({
          size: leaves.length + 1,
          last: { event_id: id, event_hash },
        });
      }
      const service = await deployment.start();
      await service.ready();
      const agent = `/v1/agents/${stream.slice('agent-'.length)}`;
      expect((await service.get(agent)).body.code).toBe('stream_damaged');
      expect((await service.post(`${agent}/run`, { input: 'Hi.' })).body.code).toBe(
        'stream_damaged',
      );
      await service.stop();
    },
    120_000,
  );

  test('a log that declares a key of the forger, who has signed the forged tree, is not served', async () => {
    const [origin = ''] = (await checkpoint()).split('\n');
    await forge();
    await signAs(origin);
    const service = await deployment.start();
    const reason = 'was signed by none of the keys in the signing key file';
    expect((await service.waiting('Events can')).body.error).toContain(reason);
    expect((await service.get('/v1/log/checkpoint')).status).toBe(503);
    expect((await service.get('/v1/agents')).status).toBe(503);
    await service.stop();
    for (const part of ['audit', 'projections'])
      expect((await deployment.cli(part, 'verify')).code).toBe(1);
  }, 120_000);

  test('a forged event is not taken for one behind the last leaf', async () => {
    const { id } = await forge();
    const { out } = await deployment.cli('events', 'tail', '--no-follow');
    const events = out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { id: string; position: string });
    const { position } = events.find((event) => event.id === id)!;
    const goOn = () => deployment.cli('audit', 'verify', '--after', position);
    await deployment.changeState({ last: { position: '0'.repeat(16) as Position } });
    const err = expect.stringContaining('Verify the whole log, without --after.');
    expect(await goOn()).toMatchObject({ code: 1, err });
    await deployment.deleteTree('state');
    expect(await goOn()).toMatchObject({ code: 1, err });
  }, 120_000);

  test('a renamed log is compared with the tree that it declares, under any name', async () => {
    const renamed = { LOG_ORIGIN: 'renamed.example/log' };
    const size = sizeOf(await sign(renamed));
    await deployment.openAnother('evil/x');
    const fits = expect.stringContaining(`transparency log fits, of ${size} leaves`);
    for (const env of [renamed, { LOG_ORIGIN: 'never.example/log' }])
      expect(await deployment.cliWith(env, 'audit', 'verify')).toMatchObject({
        code: 0,
        out: fits,
      });
  }, 120_000);

  test('a log that declares a tree is not taken for compared where the key is not known', async () => {
    const env = { LOG_SIGNING_KEY_FILE: join(folder, 'none.pem') };
    const { code, out } = await deployment.cliWith(env, 'projections', 'verify');
    expect([code, out]).toEqual([1, expect.stringContaining('was not compared')]);
    expect(out).toContain(env.LOG_SIGNING_KEY_FILE);
  }, 120_000);

  test.each(['the same tree', 'another tree'])(
    'a log that was rewritten and signed as %s is noticed by those who know the one before',
    async (what) => {
      vkey = (await deployment.cli('audit', 'vkey')).out.trim();
      const witnesses = await writeWitnessesFile(folder, [witness]);
      const before = await sign({ LOG_WITNESSES_FILE: witnesses });
      const kept = join(folder, 'kept.checkpoint');
      await writeFile(kept, before);

      const { forger } = deployment;
      forger.rewrite(forger.events('agent-')[0]!.stream, 0, ({ data }) => {
        data['model'] = 'another';
      });
      if (what === 'the same tree')
        for (const { stream } of forger.events('log-')) forger.cut(stream);
      else {
        const declared = await deployment.cli('audit', 'declare-tree', '--reason', 'forged');
        expect(declared.code).toBe(0);
      }
      await deployment.deleteTree();
      const after = await sign();
      expect(sizeOf(after)).toBeGreaterThan(sizeOf(before));
      expect((await deployment.cli('audit', 'verify')).code).toBe(0);

      const rewritten = `The log was rewritten: ${kept} knows a checkpoint of ${sizeOf(before)} entries`;
      const outside: [Record<string, string>, string][] = [
        [{ LOG_KEPT_CHECKPOINTS: kept }, rewritten],
        ...(what === 'the same tree'
          ? [
              [
                { LOG_WITNESSES_FILE: witnesses },
                'The log does not fit: the witness witness.test/w',
              ] as [Record<string, string>, string],
            ]
          : []),
      ];
      for (const [env, reason] of outside) {
        for (const part of ['audit', 'projections']) {
          const verified = await deployment.cliWith(env, part, 'verify');
          expect(verified).toMatchObject({ code: 1, out: expect.stringContaining(reason) });
        }
        const service = await deployment.start(env);
        expect((await service.waiting('The log ')).body.error).toContain(reason);
        expect(await deployment.checkpoint()).toBe(after);
        await service.stop();
      }
    },
    120_000,
  );
});
