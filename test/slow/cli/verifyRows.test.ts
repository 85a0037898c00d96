/** `projections verify`, interrupted and beside a service that goes on. */
import { randomUUID } from 'node:crypto';
import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { appendEvents, NO_STREAM } from '../../../shared/eventlog/append.ts';
import { accountStream } from '../../../shared/eventlog/streams.ts';
import { formatCheckpoint, parseCheckpoint } from '../../../shared/transparency/tlog/checkpoint.ts';
import { signNote } from '../../../shared/transparency/tlog/note.ts';
import { noteSigner } from '../../../shared/transparency/tlog/noteKeys.ts';
import { startTestService, type TestService } from '../../support/http/service.ts';
import { runCli, startCli, startCliProcess } from '../../support/processes/cliProcess.ts';
import { asOperator, eventually } from '../../support/processes/operator.ts';
import { sqliteForger, type LoggedEvent } from '../../support/stores/forger/forger.ts';
import { rowForger } from '../../support/stores/forger/rowForger.ts';

let service: TestService;
beforeEach(async () => {
  service = await startTestService();
});
afterEach(() => service.close());

const copies = async (): Promise<string[]> =>
  (await readdir(join(service.folder, 'read-models'))).filter((name) => name.includes('verifying'));

test('goes on where it was interrupted, names what differs, and leaves no copy behind', async () => {
  for (let agent = 0; agent < 3; agent += 1) await service.createAgent({ name: `Agent ${agent}` });
  // A list waits for the rows of new agents.
  await service.get('/v1/agents');
  await rowForger({ DATA_DIR: service.folder }).run(`UPDATE agents SET instruction = 'Forged.'`);
  const interrupted = startCli(service.folder, 'projections', 'verify');
  await interrupted.told((err) => err.includes('of the log read') || err.includes('compared'));
  interrupted.kill('SIGINT');
  const { code } = await interrupted.ended;
  expect([1, 130]).toContain(code);
  expect(await copies()).toHaveLength(code === 130 ? 1 : 0);
  const { out, code: found } = await runCli(service.folder, 'projections', 'verify');
  expect(found).toBe(1);
  expect(out).toContain('3 rows do not say what the log says:');
  expect(out).toMatch(/agents agent_\w+: instruction/);
  expect(out).toContain('projections rebuild');
  expect(out).not.toContain('Forged.');
  expect(await copies()).toEqual([]);
}, 60_000);

test('finds nothing while runs go on', async () => {
  const agent = await service.createAgent();
  const done = new AbortController();
  async function runOn(): Promise<void> {
    while (!done.signal.aborted) await service.post(`/v1/agents/${agent}/run`, { input: 'Hi.' });
  }
  const running = Promise.all([runOn(), runOn()]);
  for (let pass = 0; pass < 3; pass += 1) {
    const { code, out } = await runCli(service.folder, '--json', 'projections', 'verify');
    expect(JSON.parse(out)).toMatchObject({ complete: true, differing: 0, first: [] });
    expect(code).toBe(0);
  }
  done.abort();
  await running;
}, 60_000);

test.each([
  ['verify', 'verifying'],
  ['rebuild', '2.building'],
])('%s says in a sentence why its copy can not be opened', async (command, copy) => {
  const folder = join(service.folder, 'read-models');
  const [current] = (await readdir(folder)).filter((name) => name.endsWith('.1.db'));
  const file = join(folder, current!.replace('1.db', `${copy}.db`));
  await mkdir(file);
  const { code, err } = await runCli(service.folder, 'projections', command);
  expect(err).toMatch(/^The read models \S+ cannot be opened: .+\.\n$/);
  expect(err).toContain(file);
  expect(code).toBe(1);
});

describe('after an interruption among the events', () => {
  /** Two batches and more, so that the first progress comes before the end. */
  const EVENTS = 2_500;
  /** Enough for another process to be interrupted before the end. */
  const EVENTS_OF_PROCESS = 40_000;
  const BATCH = 500;
  const authorship = {
    account_id: 'acct_1',
    key_id: 'operator',
    request_id: 'test',
    causation_id: 'test',
    recorded_at: new Date().toISOString(),
  };
  const isVerifying = (err: string): boolean =>
    /\d events verified, .* % of the log read/.test(err);

  /** Appends events of one stream, and resolves once they have leaves. */
  async function fillLog(count = EVENTS): Promise<void> {
    await asOperator(service.folder, async ({ store, ids }) => {
      const stream = accountStream(ids.typeId('acct'));
      let head = NO_STREAM;
      for (let appended = 0; appended < count; appended += BATCH) {
        const events = Array.from({ length: BATCH }, (_, at) => ({
          id: randomUUID(),
          type: 'account.limits_set.v1' as const,
          data: { runs: at + 1 },
        }));
        ({ head } = await appendEvents(store, { stream, head }, { events, authorship }));
      }
    });
    const size = async () => parseCheckpoint(await signedText()).size;
    await eventually(size, (leaves) => leaves >= count);
  }
  const signedText = async (): Promise<string> =>
    `${(await asOperator(service.folder, async (operator) => (await operator.tiles()).readCheckpoint()))?.split('\n\n')[0]}\n`;
  const logged = (): LoggedEvent[] => sqliteForger(service.folder).events();

  /** Works on the copy of the interrupted verification. */
  async function inCopy<Result>(work: (copy: DatabaseSync) => Result): Promise<Result> {
    const name = (await copies()).find((file) => file.endsWith('.db'))!;
    const copy = new DatabaseSync(join(service.folder, 'read-models', name));
    try {
      return work(copy);
    } finally {
      copy.close();
    }
  }
  const lastCopied = (): Promise<LoggedEvent> =>
    inCopy((copy) => {
      const { event_id } = copy.prepare('SELECT event_id FROM checkpoint').get()!;
      return logged().find(({ id }) => id === event_id)!;
    });

  async function interrupt(): Promise<void> {
    const verification = startCli(service.folder, 'projections', 'verify');
    await verification.told(isVerifying);
    verification.kill('SIGINT');
    expect((await verification.ended).code).toBe(130);
  }
  const verify = async (...options: string[]) => {
    const args = ['--json', 'projections', 'verify', ...options];
    const { code, out } = await runCli(service.folder, ...args);
    return { code, found: JSON.parse(out) as Record<string, any> };
  };

  test('the next verification verifies only the rest of the log', async () => {
    await fillLog(EVENTS_OF_PROCESS);
    for (const signal of ['SIGINT', 'SIGKILL'] as const) {
      const env = { DATA_DIR: service.folder };
      const interrupted = startCliProcess(env, 'projections', 'verify');
      await interrupted.told(isVerifying);
      interrupted.kill(signal);
      expect((await interrupted.ended).code).toBe(signal === 'SIGINT' ? 130 : null);
      const { position } = await lastCopied();
      const rest = logged().filter((event) => event.position > position).length;
      expect(rest).toBeGreaterThan(0);
      const { out, err, code } = await runCli(service.folder, 'projections', 'verify');
      expect(err).toContain(`${rest} events verified`);
      expect(err).toMatch(/: \d+ rows compared, 0 differ/);
      expect(out).toContain('An interrupted verification was continued');
      expect(out).toContain('The log fits its transparency log');
      expect(code).toBe(0);
      expect(await copies()).toEqual([]);
    }
  }, 120_000);

  test('a changed log is noticed from the last verified event on, and wholly with --anew', async () => {
    await service.createAgent();
    await fillLog();
    await interrupt();
    await service.service().stop();
    const forger = sqliteForger(service.folder);
    const rename = ({ data }: LoggedEvent): void => void (data['name'] = 'Forged');
    const [first] = forger.events('agent-');
    forger.rewrite(first!.stream, 0, rename);
    const agent = first!.stream.slice('agent-'.length);
    const forgeRow = 'UPDATE {agents} SET name = ? WHERE agent_id = ?';
    await rowForger({ DATA_DIR: service.folder }).run(forgeRow, 'Forged', agent);
    // The copy has the event as it was verified.
    const { found, code } = await verify();
    expect(found).toMatchObject({
      complete: true,
      differing: 1,
      first: [{ table: 'agents', key: agent, column: 'name' }],
      continued: { rows: 0 },
      log: { misfit: null },
    });
    expect(code).toBe(1);
    const misfit = expect.stringContaining(`(${first!.stream} revision 0, `);
    expect(await verify('--anew')).toMatchObject({ code: 1, found: { rows: 0, log: { misfit } } });
  }, 120_000);

  test('a log whose last verified event was changed is verified anew', async () => {
    await fillLog();
    await interrupt();
    const { stream, revision } = await lastCopied();
    await service.service().stop();
    sqliteForger(service.folder).rewrite(stream, revision, ({ data }) => void (data['runs'] = 9));
    const misfit = expect.stringContaining(`(${stream} revision ${revision}, `);
    expect(await verify()).toMatchObject({
      code: 1,
      found: {
        anew: expect.stringMatching(/^The event \S+ at \S+ was changed\.$/),
        rows: 0,
        log: { misfit },
      },
    });
    expect(await copies()).toEqual([]);
  }, 120_000);

  test('a copy that lies about the log is not continued, and a signed checkpoint of another tree is a misfit', async () => {
    await fillLog();
    const { name, keys } = await asOperator(service.folder, async ({ signing }) => ({
      name: (await signedText()).split('\n')[0]!,
      keys: signing().keys,
    }));
    const sign = (origin: string, size: number): string =>
      signNote(
        formatCheckpoint({ origin, size, root: Buffer.alloc(32) }),
        keys.map((key) => noteSigner(origin, key)),
      );
    const { rows } = (await verify()).found;
    const begun = { table: undefined, rows: 9_999, differing: 0, named: [] };
    for (const [state, anew] of [
      ['{', 'was not compared with its transparency log before'],
      [{ ...begun, table: 'nothing' }, 'was not compared with its transparency log before'],
      [begun, 'was not compared with its transparency log before'],
      [{ ...begun, tree: { checkpoint: 'x' } }, 'is not the one of before'],
      [{ ...begun, tree: { checkpoint: sign('other/log', 5) } }, 'is not the one of before'],
      [{ ...begun, tree: { checkpoint: sign(name, 5) } }, undefined],
    ] as const) {
      await interrupt();
      const text = typeof state === 'string' ? state : JSON.stringify(state);
      await inCopy((copy) => copy.prepare('UPDATE verification SET state = ?').run(text));
      const { found, code } = await verify();
      const events = logged().length;
      if (anew === undefined) {
        expect(found['log']).toMatchObject({ misfit: expect.stringContaining('5 leaves') });
        expect([found['rows'], code]).toEqual([0, 1]);
      } else {
        expect(found).toMatchObject({ anew: expect.stringContaining(anew), rows, log: { events } });
        expect([found['continued'], code]).toEqual([undefined, 0]);
      }
    }
  }, 120_000);
});
