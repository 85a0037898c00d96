import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import {
  runCli,
  runCliWith,
  startCli,
  startCliProcess,
} from '../../support/processes/cliProcess.ts';
import { startTestService, type TestService } from '../../support/http/service.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

interface PrintedEvent {
  id: string;
  stream: string;
  revision: number;
  position: string;
  type: string;
  data: { input?: unknown };
  metadata: { hash: string };
}

let service: TestService;
let agent: string;
let session: string;
let elsewhere: string;
beforeAll(async () => {
  elsewhere = await temporaryFolder();
  service = await startTestService();
  agent = await service.createAgent();
  session = (await service.post(`/v1/agents/${agent}/run`, { input: 'hi' })).body.data
    .session_id as string;
  for (let turn = 2; turn <= 4; turn += 1)
    await service.post(`/v1/agents/${agent}/run`, { input: `hi ${turn}`, session_id: session });
});
afterAll(async () => {
  await service.close();
  await rm(elsewhere, { recursive: true });
});

const events = (out: string): PrintedEvent[] =>
  out
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as PrintedEvent);

describe('events tail', () => {
  test('prints every event as a line of JSON, in order, and ends where the log does with --no-follow', async () => {
    const { code, out, err } = await runCli(service.folder, 'events', 'tail', '--no-follow');
    expect({ code, err }).toEqual({ code: 0, err: '' });
    const all = events(out);
    expect(all.map(({ type }) => type)).toEqual([
      'account.opened.v1',
      'account.key_issued.v1',
      'log.tree_declared.v1',
      'agent.created.v1',
      'session.started.v1',
      ...[1, 2, 3, 4].flatMap(() => ['session.turn_started.v1', 'session.turn_completed.v1']),
    ]);
    expect(all.map(({ position }) => position)).toEqual(
      all.map(({ position }) => position).toSorted(),
    );
    const rest = events(
      (await runCli(service.folder, 'events', 'tail', '--no-follow', '--after', all[5]!.position))
        .out,
    );
    expect(rest).toEqual(all.slice(6));
    const { data } = (await service.get(`/v1/sessions/${session}/events`)).body;
    const ofSession = all.filter(({ stream }) => stream === `session-${session}`);
    const recorded = ({ id, revision, metadata }: PrintedEvent) => ({ id, revision, metadata });
    expect(ofSession.map(recorded)).toEqual((data as PrintedEvent[]).map(recorded));
    // Texts stand open, for people, and without what proves a text to others.
    expect(ofSession[1]?.data.input).toBe('hi');
    expect(out).not.toContain('"salt"');
  });

  test('follows a running server until it is interrupted', async () => {
    const tail = startCli(service.folder, 'events', 'tail');
    await tail.printed((out) => out.includes('account.opened.v1'));
    const { body } = await service.post(`/v1/agents/${agent}/run`, { input: 'watch me' });
    const out = await tail.printed(
      (text) =>
        text.includes(body.data.session_id as string) &&
        text.includes('watch me') &&
        text.endsWith('\n'),
    );
    expect(events(out).length).toBeGreaterThan(0);
    tail.kill('SIGINT');
    expect((await tail.ended).code).toBe(0);
  });

  test.each([
    ['zzz', ['events', 'tail', '--no-follow']],
    ['0000000000000999', ['events', 'tail', '--no-follow']],
    ['18446744073709551615/18446744073709551615', ['audit', 'verify']],
    ['0000000000000999', ['events', 'copy', '--from', 'SOURCE', '--to', 'TARGET']],
  ])(
    'refuses the position %s, which is no position of the log, in one sentence: %j',
    async (after, command) => {
      const places = new Map([
        ['SOURCE', service.folder],
        ['TARGET', join(elsewhere, 'refused')],
      ]);
      const { code, out, err } = await runCli(
        service.folder,
        ...command.map((word) => places.get(word) ?? word),
        '--after',
        after,
      );
      expect({ code, out }).toEqual({ code: 2, out: '' });
      expect(err).toMatch(/^[^.\n]*\.\n$/);
      expect(err).toContain(after);
      expect(err).toMatch(/which ends at \d{16}: .*use one that was printed/);
    },
  );
});

describe('projections rebuild', () => {
  test('rebuilds the read models while the server goes on answering reads and writes', async () => {
    const before = (await service.get(`/v1/sessions/${session}`)).body;
    const rebuilding = startCliProcess(
      { DATA_DIR: service.folder },
      'projections',
      'rebuild',
    ).ended;
    const isOver = (): Promise<boolean> =>
      Promise.race([rebuilding.then(() => true), setImmediate(false)]);
    const answers: unknown[] = [];
    let created = '';
    while (!(await isOver())) {
      const [read, written] = await Promise.all([
        service.get(`/v1/sessions/${session}`),
        service.createAgent(),
      ]);
      answers.push(read.body);
      created = written;
      expect((await service.get(`/v1/agents/${created}`)).status).toBe(200);
    }
    const { code, out } = await rebuilding;
    expect({ code, out }).toEqual({
      code: 0,
      out: 'The read models are rebuilt; a running server goes over to them within a second.\n',
    });
    expect(answers.length).toBeGreaterThan(0);
    for (const answer of answers) expect(answer).toEqual(before);
    expect((await service.get(`/v1/sessions/${session}`)).body).toEqual(before);
    expect((await service.get(`/v1/agents/${created}`)).status).toBe(200);
  });

  test.each(['rebuild', 'verify'])(
    'leaves to the service the disk space that is reserved for it: %s',
    async (command) => {
      const folder = join(service.folder, 'read-models');
      const copies = async () => (await readdir(folder)).filter((name) => /ing\.db/.test(name));
      const env = { DATA_DIR: service.folder, DISK_STOP_FREE: '999999999999999' };
      const { code, out, err } = await runCliWith(env, 'projections', command);
      expect({ code, out }).toEqual({ code: 1, out: '' });
      expect(err).toContain('DISK_STOP_FREE');
      expect(await copies()).toEqual([]);
    },
  );
});
