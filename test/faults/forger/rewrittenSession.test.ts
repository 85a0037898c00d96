/**
 * Someone with write access to the files of the log rewrites an old turn of a session, with the
 * hash chain of its stream, so that all hashes fit; then one more turn gets a genuine leaf.
 */
import { spawnSync } from 'node:child_process';
import { isDeepStrictEqual } from 'node:util';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { writeTar } from '../../../infra/tar/writeTar.ts';
import { bundleContent } from '../../../shared/transparency/proof/makeBundle.ts';
import { createRedaction } from '../../../shared/transparency/proof/redaction.ts';
import { withholdText, mapTexts } from '../../../shared/transparency/proof/shownTexts.ts';
import { proveEvent } from '../../../shared/transparency/proof/proveEvent.ts';
import { parseCheckpoint } from '../../../shared/transparency/tlog/checkpoint.ts';
import { parseNote } from '../../../shared/transparency/tlog/note.ts';
import { createInclusionProver } from '../../../shared/transparency/tlog/proofs.ts';
import { findLeafIndex } from '../../../shared/transparency/tlog/leaf.ts';
import type { Operator } from '../../../services/compose/operator/operator.ts';
import { decodeEvent } from '../../../shared/eventlog/codec.ts';
import { converse, run, type TestSession } from '../../support/http/damagedSession.ts';
import { expectFailure } from '../../support/http/failures.ts';
import type { Reply } from '../../support/http/service.ts';
import { startCliWith, type CliResult } from '../../support/processes/cliProcess.ts';
import { asOperatorOn, eventually } from '../../support/processes/operator.ts';
import type { LoggedEvent } from '../../support/stores/forger/forger.ts';
import { forgedStores, type ForgedService } from '../../support/stores/forger/forgedService.ts';
import { treeForger } from '../../support/stores/forger/treeForger.ts';

const VERIFIER = join(import.meta.dirname, '../../../examples/verify_bundle.py');
const FORGED = 'What was never said.';

describe.each(await forgedStores())(
  'a session that is rewritten in a log in $name',
  ({ start }) => {
    let service: ForgedService;
    let elsewhere: string;
    beforeAll(async () => {
      elsewhere = await mkdtemp(join(tmpdir(), 'turnlog-forged-out-'));
      service = await start({ text: 'What was said.' });
    });
    afterAll(async () => {
      await service.close();
      await rm(elsewhere, { recursive: true });
    });

    const cli = (...args: string[]): Promise<CliResult> => startCliWith(service.env, ...args).ended;
    const proofOf = ({ session }: TestSession) => service.get(`/v1/sessions/${session}/proof`);

    /** A session whose events all have leaves, before those of another session. */
    async function recorded(turns = 3): Promise<TestSession & { events: LoggedEvent[] }> {
      const session = await converse(service, turns);
      // Followers that start again look whether the newest event that they know is there.
      const other = await converse(service, 1);
      await eventually(
        () => proofOf(other),
        ({ status }) => status === 200,
      );
      return { ...session, events: service.forger.stream(session.stream) };
    }

    /** Puts another text where a protected one was, and another time. */
    const plain = (event: LoggedEvent): void => {
      event.data['output'] = FORGED;
      event.metadata['recorded_at'] = '2020-01-01T00:00:00.000Z';
    };
    const restore = (events: readonly LoggedEvent[]): void => {
      for (const event of events)
        service.forger.change(event.stream, event.revision, () => structuredClone(event));
    };

    /** Expects that the first changed revision is named where all are read, or else a later one. */
    async function expectRefused(session: TestSession, revision: number): Promise<void> {
      const answers = [
        await run(service, session.agent, 'go on', session.session),
        await proofOf(session),
        await service.get(`/v1/sessions/${session.session}/events`),
      ];
      for (const answer of answers) {
        const { error } = expectFailure(answer, 'stream_damaged');
        expect(error).toContain(session.stream);
        const [, named] = /: the event at revision (\d+) /.exec(error!) ?? [];
        expect(Number(named)).toBeGreaterThanOrEqual(revision);
        expect(JSON.stringify(answer.body)).not.toContain(FORGED);
      }
      expect(answers.at(-1)!.body.error).toContain(`: the event at revision ${revision} `);
      const { body } = await service.get('/health/ready');
      expect(body.data.status).toBe('degraded');
      expect(body.data.damaged_streams).toContainEqual(
        expect.objectContaining({ stream: session.stream }),
      );
    }

    async function expectNoExport(
      session: TestSession,
      reason = 'the event at revision',
    ): Promise<void> {
      const out = join(elsewhere, 'never.tar');
      const { code, err } = await cli(
        'audit',
        'export',
        '--session',
        session.session,
        '--out',
        out,
      );
      expect({ code, err }).toEqual({
        code: 1,
        err: expect.stringContaining(`The stream ${session.stream} is damaged: ${reason}`),
      });
    }

    test('keeps its transcript, and is found without a request, also once rows are made from it', async () => {
      const session = await recorded();
      const transcript = () => service.get(`/v1/sessions/${session.session}`);
      const genuine = (await transcript()).body;
      const isNamed = ({ body }: Reply): boolean =>
        ((body.data.damaged_streams ?? []) as { stream: string }[]).some(
          ({ stream }) => stream === session.stream,
        );
      await service.service().stop();
      service.forger.rewrite(
        session.stream,
        2,
        ({ data }) => void (data['finish_reason'] = 'length'),
      );
      for (const isRebuilt of [false, true]) {
        if (isRebuilt) expect((await cli('projections', 'rebuild')).code).toBe(0);
        await service.restart();
        const shown = await transcript();
        expect([shown.status, isDeepStrictEqual(shown.body.data, genuine.data)]).toEqual([
          200,
          !isRebuilt,
        ]);
        await eventually(() => service.get('/health/ready'), isNamed);
        expect(await cli('projections', 'verify')).toMatchObject({
          code: 1,
          out: expect.stringMatching(
            new RegExp(`\\(${session.stream} revision 2, [^]*No rows were compared`),
          ),
        });
        expect(await cli('audit', 'verify')).toMatchObject({
          code: 1,
          out: expect.stringContaining(`(${session.stream} revision 2, `),
        });
      }
      restore(session.events);
      expect((await cli('projections', 'rebuild')).code).toBe(0);
      await service.restart();
    }, 120_000);

    test('is not continued, proven or exported', async () => {
      const session = await recorded();
      service.forger.rewrite(session.stream, 4, plain);
      await expectRefused(session, 4);
      await expectNoExport(session);
      await service.restart();
      await expectRefused(session, 4);

      restore(session.events);
      expect((await run(service, session.agent, 'go on', session.session)).status).toBe(200);
      expect((await proofOf(session)).status).toBe(200);
      const { body } = await service.get('/health/ready');
      expect(JSON.stringify(body.data.damaged_streams ?? [])).not.toContain(session.stream);
    });

    test('whose end is deleted is not continued, proven or exported', async () => {
      const session = await recorded();
      service.forger.cut(session.stream, 5);
      const missing = 'revision 5 is missing; revisions 0 to 4 were found';
      for (const isRestarted of [false, true]) {
        if (isRestarted) await service.restart();
        for (const answer of [
          await run(service, session.agent, 'go on', session.session),
          await proofOf(session),
          await service.get(`/v1/sessions/${session.session}/events`),
        ])
          expect(expectFailure(answer, 'stream_damaged').error).toContain(missing);
      }
      expect(service.forger.stream(session.stream)).toHaveLength(5);
      await expectNoExport(session, missing);
      expect(await cli('audit', 'verify')).toMatchObject({
        code: 1,
        out: expect.stringContaining('does not fit'),
      });
    });

    test('with an event of an unknown type is not taken for one of a newer release', async () => {
      const session = await recorded();
      service.forger.rewrite(session.stream, 4, () => ({ type: 'session.turn_imagined.v1' }));
      await expectRefused(session, 4);
      await expectNoExport(session);
    });

    test('is refused by the process that appended it, before it has a leaf', async () => {
      const { length } = service.forger.events();
      const size = await eventually(
        async () => (await service.get('/health/ready')).body.data.transparency_log.size as number,
        (leaves) => leaves >= length,
      );
      // Nothing is signed while the state is of another tree.
      const tree = treeForger(service.env);
      await tree.changeState({ size: size + 1 });
      const { agent, session, stream } = await converse(service, 3);
      // Followers that start again look whether the newest event that they know is there.
      await converse(service, 1);
      const genuine = service.forger.stream(stream);
      service.forger.rewrite(stream, 4, plain);
      for (const answer of [
        await service.get(`/v1/sessions/${session}/events`),
        await run(service, agent, 'go on', session),
      ])
        expect(expectFailure(answer, 'stream_damaged').error).toContain(stream);
      // docs/proof.md: inherent for a process that has not appended it.
      restore(genuine);
      service.forger.rewrite(stream, 4, ({ data }) => void (data['finish_reason'] = 'length'));
      await service.restart();
      const { status, body } = await service.get(`/v1/sessions/${session}/events`);
      expect([status, JSON.stringify(body).includes('"finish_reason":"length"')]).toEqual([
        200,
        true,
      ]);
      restore(genuine);
      await tree.changeState({ size });
      await service.restart();
    });

    test('is refused after a restart, where the first text of all is plain', async () => {
      const session = await recorded();
      service.forger.rewrite(session.stream, 1, ({ data }) => ({
        data: { ...data, input: FORGED },
      }));
      for (const revision of [2, 3, 4, 5, 6])
        service.forger.change(session.stream, revision, ({ data }) => ({
          data: { ...data, ...('input' in data ? { input: FORGED } : { output: FORGED }) },
        }));
      service.forger.rechain(session.stream);
      await service.restart();
      await expectRefused(session, 1);
      await expectNoExport(session);
    });

    test('has no bundle that verifies, though its newest event has a leaf', async () => {
      const session = await recorded();
      const { forger } = service;
      const genuine = forger.stream(session.stream);
      forger.rewrite(session.stream, 2, ({ data }) => void (data['finish_reason'] = 'forged'));
      // The forger appends one more turn, which the service proves as it proves every event.
      const [started, completed] = [forger.read(session.stream, 5), forger.read(session.stream, 6)];
      for (const [revision, event] of [
        [7, started],
        [8, completed],
      ] as const)
        forger.insert(session.stream, revision, { ...event, id: crypto.randomUUID() });
      // The next write wakes the service's followers.
      await converse(service, 1);
      // The newest event alone is one of the log now.
      const newest = `/v1/sessions/${session.session}/events?after=7`;
      await eventually(
        () => service.get(newest),
        ({ status, body }) => status === 200 && body.data.length === 1,
      );
      const { position } = forger.read(session.stream, 8);
      await eventually(
        () => service.get('/health/ready'),
        ({ body }) =>
          body.data.transparency_log.size >=
          forger.events().findIndex((one) => one.position === position) + 1,
      );
      expect((await service.get(newest)).status).toBe(200);
      await expectRefused(session, 2);
      await expectNoExport(session);

      const file = join(elsewhere, 'forged.tar');
      await asOperatorOn(service.env, (operator) =>
        writeForgedBundle(operator, session, genuine, file),
      );
      const { out: vkey } = await cli('audit', 'vkey');
      const alone = { DATA_DIR: join(elsewhere, 'nothing') };
      const verified = await startCliWith(
        alone,
        'audit',
        'verify-bundle',
        file,
        '--vkey',
        vkey.trim(),
      ).ended;
      expect(verified).toMatchObject({
        code: 1,
        out: expect.stringMatching(/^It does not fit\. The event at revision 2 does not fit: /),
      });
      const python = spawnSync('python3', ['-B', VERIFIER, file, vkey.trim()], {
        encoding: 'utf8',
      });
      expect([python.status, python.stderr]).toEqual([
        1,
        expect.stringMatching(/^It does not fit: /),
      ]);
    });

    /**
     * What the forger can make of the rewritten session: with the genuine proof of its last event,
     * and for each event before it the leaf of the event that was there.
     */
    async function writeForgedBundle(
      operator: Pick<Operator, 'store' | 'tiles'>,
      { session, stream }: TestSession,
      genuine: readonly LoggedEvent[],
      file: string,
    ): Promise<void> {
      const tiles = await operator.tiles();
      const stored = await operator.store.readStream(stream, { direction: 'forwards', limit: 100 });
      const { position } = stored.at(-1)!;
      const last = decodeEvent(stored.at(-1)!);
      const { hash } = last.metadata;
      const proof = await eventually(
        () => proveEvent(tiles, { position, hash }, 5_000),
        (found) => found !== undefined,
      );
      const { size } = parseCheckpoint(parseNote(proof!.checkpoint).text);
      const prove = createInclusionProver(tiles, size);
      const { out: vkey } = await cli('audit', 'vkey');
      let at = 0;
      const content = bundleContent({
        session_id: session,
        head: { revision: last.revision, hash },
        proof: proof!,
        vkey: vkey.trim(),
        consistency: undefined,
        shown: (async function* () {
          for (const event of stored) {
            const { data, ...shown } = decodeEvent(event);
            const bare = JSON.parse(
              JSON.stringify(data, (name, value: unknown) => (name === 'box' ? undefined : value)),
            ) as object;
            yield { ...shown, data: mapTexts(bare, withholdText) };
          }
        })(),
        async proveLeaf(event) {
          const was = genuine[at]?.metadata['hash'] as string | undefined;
          at += 1;
          const index = (await findLeafIndex(tiles, { ...event, hash: was ?? event.hash }, size))!;
          return { index, hashes: await prove(index) };
        },
        redaction: createRedaction([]),
      });
      const { signal } = new AbortController();
      await writeTar(file, { ...content, modified: new Date(0), signal });
    }
  },
);
