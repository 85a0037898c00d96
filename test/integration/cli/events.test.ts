import { randomUUID } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { openSqliteEventStore } from '../../../infra/sqlite/eventStore.ts';
import { chainEvents, NO_STREAM } from '../../../shared/eventlog/append.ts';
import { runCli, startCli, type CliResult } from '../../support/processes/cliProcess.ts';
import { startTestService, type TestService } from '../../support/http/service.ts';
import { temporaryFolder } from '../../support/sqlite/sqliteEventStore.ts';

interface PrintedEvent {
  id: string;
  stream: string;
  revision: number;
  position: string;
  type: string;
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
      'agent.created.v1',
      'session.started.v1',
      ...[1, 2, 3, 4].flatMap(() => ['session.turn_started.v1', 'session.turn_completed.v1']),
    ]);
    expect(all.map(({ position }) => position)).toEqual(
      all.map(({ position }) => position).toSorted(),
    );
    const { data } = (await service.get(`/v1/sessions/${session}/events`)).body;
    expect(
      all
        .filter(({ stream }) => stream === `session-${session}`)
        .map(({ position: _position, ...event }) => event),
    ).toEqual(data);

    const rest = events(
      (await runCli(service.folder, 'events', 'tail', '--no-follow', '--after', all[5]!.position))
        .out,
    );
    expect(rest).toEqual(all.slice(6));
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

  test('refuses a position that is none', async () => {
    const { code, out, err } = await runCli(service.folder, 'events', 'tail', '--after', 'x y');
    expect({ code, out }).toEqual({ code: 1, out: '' });
    expect(err).toContain('Take a position as another command printed it.');
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
      expect({ code, out }).toEqual({ code: 1, out: '' });
      expect(err).toMatch(/^[^.\n]*\.\n$/);
      expect(err).toContain(after);
      expect(err).toMatch(/which ends at \d{16}: take one that was printed/);
    },
  );
});

/** A consistent copy of the running service's log, changed by `tamper`. */
async function copyOfLog(name: string, tamper: (log: DatabaseSync) => void): Promise<string> {
  const folder = join(elsewhere, name);
  await mkdir(folder);
  const live = new DatabaseSync(join(service.folder, 'events.db'), { readOnly: true });
  live.exec(`VACUUM INTO '${join(folder, 'events.db')}'`);
  live.close();
  const copy = new DatabaseSync(join(folder, 'events.db'));
  tamper(copy);
  copy.close();
  return folder;
}

describe('audit verify', () => {
  test('says that every event fits, beside a running server', async () => {
    const { code, out, err } = await runCli(service.folder, 'audit', 'verify');
    expect({ code, out }).toEqual({ code: 0, out: 'Every event fits its hash chain.\n' });
    expect(err).toMatch(/^\d+ events verified\n$/m);
  });

  test.each([
    [
      'one byte of its data was changed',
      'UPDATE events SET data = replace(data, \'"hi 3"\', \'"hi 4"\') WHERE data LIKE \'%"hi 3"%\'',
      5,
      'its hash does not match its content',
    ],
    [
      'its account was changed',
      "UPDATE events SET metadata = replace(metadata, 'acct_0', 'acct_1') WHERE revision = 3 AND stream = 'THE SESSION'",
      3,
      'its hash does not match its content',
    ],
    [
      'its hash was changed with it',
      `UPDATE events SET metadata = json_set(metadata, '$.hash', '${'0'.repeat(64)}') WHERE revision = 2 AND stream = 'THE SESSION'`,
      2,
      'its hash does not match its content',
    ],
    [
      'its data is no JSON any more',
      "UPDATE events SET data = '{' WHERE revision = 4 AND stream = 'THE SESSION'",
      4,
      'it can not be decoded',
    ],
    [
      'the one before it was removed',
      "DELETE FROM events WHERE revision = 4 AND stream = 'THE SESSION'",
      5,
      'its revision is 5 where 4 is due',
    ],
  ])(
    'names the first event that does not fit, with exit code 1, when %s',
    async (what, sql, revision, reason) => {
      const folder = await copyOfLog(what, (log) => {
        expect(log.prepare(sql.replace('THE SESSION', `session-${session}`)).run().changes).toBe(1);
      });
      const { code, out } = await runCli(folder, 'audit', 'verify');
      const { id, position } = events(
        (await runCli(service.folder, 'events', 'tail', '--no-follow')).out,
      ).find((event) => event.stream === `session-${session}` && event.revision === revision)!;
      expect({ code, out }).toEqual({
        code: 1,
        out: `The event ${id} (session-${session} revision ${revision}, position ${position}) does not fit: ${reason}.\n`,
      });
    },
  );

  test('tells how to go on when it is interrupted, with exit code 130, and goes on from there', async () => {
    const folder = join(elsewhere, 'long');
    const store = await openSqliteEventStore({ folder });
    const authorship = {
      account_id: 'acct_1',
      key_id: 'key_1',
      request_id: 'test',
      causation_id: 'test',
      recorded_at: '2026-01-01T00:00:00.000Z',
    };
    const STREAMS = 150;
    const EACH = 400;
    for (let stream = 0; stream < STREAMS; stream += 1) {
      const history = Array.from({ length: EACH }, () => ({
        id: randomUUID(),
        type: 'test.happened.v1',
        data: { stream },
      }));
      await store.append(
        `test-${stream}`,
        'no_stream',
        chainEvents(`test-${stream}`, NO_STREAM, history, authorship).encoded,
      );
    }
    await store.close();

    const interrupted = async (): Promise<CliResult> => {
      const verification = startCli(folder, 'audit', 'verify');
      await verification.told((text) => text.includes('events verified'));
      verification.kill('SIGINT');
      const result = await verification.ended;
      // On a busy machine it may have come to its end before the signal came: then once more.
      return result.code === 0 ? interrupted() : result;
    };
    const { code, out, err } = await interrupted();
    expect({ code, out }).toEqual({ code: 130, out: '' });
    const [, done, after] =
      /Interrupted after (\d+) events\. Go on with: audit verify --after (\S+)\n$/.exec(err)!;
    expect(Number(done)).toBeLessThan(STREAMS * EACH);

    const rest = await runCli(folder, 'audit', 'verify', '--after', after!);
    expect({ code: rest.code, out: rest.out }).toEqual({
      code: 0,
      out: 'Every event fits its hash chain.\n',
    });
    expect(rest.err).toContain(`${STREAMS * EACH - Number(done)} events verified\n`);
  });
});

describe('projections rebuild', () => {
  test('rebuilds the read models while the server goes on answering reads and writes', async () => {
    const before = (await service.get(`/v1/sessions/${session}`)).body;
    const rebuilding = runCli(service.folder, 'projections', 'rebuild');
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
});
