import { cp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { openCheckpoint } from '../../../shared/proof/openCheckpoint.ts';
import { leafEntry } from '../../../shared/tlog/leaf.ts';
import { leafHash } from '../../../shared/tlog/merkle.ts';
import { parseVkey } from '../../../shared/tlog/noteKeys.ts';
import { parseProof } from '../../../shared/tlog/proofFile.ts';
import { verifyInclusion } from '../../../shared/tlog/verify.ts';
import { startTestService, type TestService } from '../../support/http/service.ts';
import { runCli, startCliWith, type CliResult } from '../../support/processes/cliProcess.ts';
import { temporaryFolder } from '../../support/sqlite/sqliteEventStore.ts';

const NO_SESSION = 'session_01kahz1c3sf6w9m3v5q7x9z1a3';

let service: TestService;
let elsewhere: string;
let session: string;
let kept: string;
beforeAll(async () => {
  elsewhere = await temporaryFolder();
  service = await startTestService({ text: 'A secret answer.' });
  const agent = await service.createAgent();
  session = (await service.post(`/v1/agents/${agent}/run`, { input: 'Ada asks' })).body.data
    .session_id as string;
  await service.post(`/v1/agents/${agent}/run`, { input: 'Bob asks', session_id: session });
  kept = join(elsewhere, 'kept.checkpoint');
  const { body } = await service.get(`/v1/sessions/${session}/proof`);
  await writeFile(kept, body.data.checkpoint as string);
});
afterAll(async () => {
  await service.close();
  await rm(elsewhere, { recursive: true });
});

const cli = (...args: string[]): Promise<CliResult> => runCli(service.folder, ...args);

/** A command where there is no data folder and no configuration. */
const alone = (...args: string[]): Promise<CliResult> =>
  startCliWith({ DATA_DIR: join(elsewhere, 'nothing') }, ...args).ended;

const exported = async (name: string, ...more: string[]): Promise<string> => {
  const file = join(elsewhere, name);
  const { code, err } = await cli('audit', 'export', '--session', session, '--out', file, ...more);
  expect({ code, err }).toMatchObject({ code: 0 });
  return file;
};

describe('the proof of a session', () => {
  test('has the chain up to the proven event, and no text', async () => {
    const { status, body } = await service.get(`/v1/sessions/${session}/proof`);
    expect(status).toBe(200);
    const { events, leaf, revision, proof, checkpoint } = body.data;
    expect(events).toHaveLength(revision + 1);
    expect(events.at(-1).metadata.hash).toBe(leaf.hash);
    expect(events[1].data.input).toEqual({ sha256: expect.stringMatching(/^[0-9a-f]{64}$/) });
    expect(JSON.stringify(events)).not.toMatch(/Ada|secret/);
    expect(proof).toContain(`index ${leaf.index}\n`);
    expect(proof.endsWith(checkpoint)).toBe(true);
  });

  test('comes in pages', async () => {
    const { body, headers } = await service.get(`/v1/sessions/${session}/proof?limit=2`);
    expect(body.data.events).toHaveLength(2);
    expect(headers.get('link')).toContain('after=1');
    const rest = await service.get(`/v1/sessions/${session}/proof?after=1`);
    expect(rest.body.data.events[0].revision).toBe(2);
  });
});

describe('audit export and verify-bundle', () => {
  test('write what verifies where there is nothing of the service', async () => {
    const file = await exported('whole.tar');
    const { code, out } = await alone('audit', 'verify-bundle', file);
    expect(code).toBe(0);
    expect(out).toMatch(
      /^It fits: 5 events of session_\w+; 6 texts disclosed, 0 redacted, 0 erased\./,
    );
    expect(out).toContain('proves nothing by itself');
    expect(await readdir(elsewhere)).not.toContain('nothing');
    const [vkey] = /turnlog\/\S+$/.exec((await readFile(file, 'utf8')).split('\n')[1]!) ?? [];
    const known = await alone('audit', 'verify-bundle', file, '--vkey', vkey!);
    expect([known.code, known.out.includes('proves nothing')]).toEqual([0, false]);
  });

  test('leave out what is redacted', async () => {
    const file = await exported('redacted.tar', '--redact', '1.input,output');
    expect(await readFile(file, 'latin1')).not.toMatch(/Ada|secret/);
    const { code, out } = await alone('--json', 'audit', 'verify-bundle', file);
    expect([code, JSON.parse(out)]).toEqual([
      0,
      expect.objectContaining({ fits: true, disclosed: 1, redacted: 5, erased: 0 }),
    ]);
  });

  test('name what does not fit, with exit code 1', async () => {
    const file = await exported('changed.tar');
    await writeFile(
      file,
      (await readFile(file, 'latin1')).replace('Ada asks', 'Eve asks'),
      'latin1',
    );
    const { code, out } = await alone('audit', 'verify-bundle', file);
    expect({ code, out }).toEqual({
      code: 1,
      out: 'It does not fit. The event at revision 1 does not fit: its input is not the text that was committed to.\n',
    });
  });

  test('refuse what is mistyped, and write nothing', async () => {
    const before = await readdir(elsewhere);
    const out = join(elsewhere, 'not.tar');
    const tried = async (id: string, ...more: string[]): Promise<number | null> =>
      (await cli('audit', 'export', '--session', id, '--out', out, ...more)).code;
    expect(await tried(session, '--redact', '33')).toBe(1);
    expect(await tried(session, '--redact', 'inputs')).toBe(2);
    expect(await tried(NO_SESSION)).toBe(1);
    expect(await readdir(elsewhere)).toEqual(before);
  });

  test('are recorded in the audit of the account', async () => {
    const { out } = await cli('events', 'tail', '--no-follow');
    const audited = out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { type: string; data: { action: string } })
      .filter(({ type }) => type === 'account.audited.v1');
    expect(new Set(audited.map(({ data }) => data.action))).toEqual(new Set(['proof', 'export']));
  });
});

describe('an erased session', () => {
  test('has a receipt that verifies, a proof, and a bundle without any text', async () => {
    const agent = await service.createAgent();
    const { data } = (await service.post(`/v1/agents/${agent}/run`, { input: 'Eve asks' })).body;
    const erased = data.session_id as string;
    const reply = (await service.send('DELETE', `/v1/sessions/${erased}`, '')).body.data;
    const { vkeys } = JSON.parse((await cli('--json', 'audit', 'vkey')).out) as { vkeys: string[] };
    const { index, hashes, checkpoint } = parseProof(reply.receipt as string);
    const head = openCheckpoint(checkpoint, vkeys.map(parseVkey)).checkpoint;
    const leaf = leafHash(leafEntry(reply.event.hash as string, index));
    expect(verifyInclusion(hashes, index, leaf, head)).toBe(true);

    const { status, body } = await service.get(`/v1/sessions/${erased}/proof`);
    expect([status, body.data.leaf]).toEqual([200, { hash: reply.event.hash, index }]);
    expect(body.data.events[1].data.input).toEqual({ sha256: expect.any(String), erased: true });

    const file = join(elsewhere, 'erased.tar');
    const made = await cli('audit', 'export', '--session', erased, '--out', file);
    expect(made).toMatchObject({ code: 0 });
    const { code, out } = await alone('--json', 'audit', 'verify-bundle', file);
    expect([code, JSON.parse(out)]).toEqual([
      0,
      expect.objectContaining({ fits: true, disclosed: 0, redacted: 0, erased: 3 }),
    ]);
    const stopped = await cli(
      'audit',
      'export',
      '--session',
      erased,
      '--out',
      file,
      '--redact',
      'input',
    );
    expect(stopped).toMatchObject({ code: 0 });
  });
});

describe('audit verify, with the transparency log', () => {
  /** A copy of the data folder, changed. */
  async function copy(name: string, change: (log: DatabaseSync) => void): Promise<string> {
    const folder = join(elsewhere, name);
    await cp(service.folder, folder, {
      recursive: true,
      filter: (source) => !/events\.db(-shm|-wal)?$/.test(source),
    });
    const live = new DatabaseSync(join(service.folder, 'events.db'), { readOnly: true });
    live.exec(`VACUUM INTO '${join(folder, 'events.db')}'`);
    live.close();
    const log = new DatabaseSync(join(folder, 'events.db'));
    change(log);
    log.close();
    return folder;
  }

  test('fits the checkpoint that was kept elsewhere', async () => {
    const { code, out } = await cli('audit', 'verify', '--checkpoint', kept);
    expect([code, out]).toEqual([0, expect.stringContaining('So does the checkpoint of ')]);
  });

  test('names a stream that was deleted, by the first event that is gone', async () => {
    const stream = `session-${session}`;
    const folder = await copy('deleted', (log) => {
      log.prepare('DELETE FROM events WHERE stream = ?').run(stream);
    });
    const { code, out } = await runCli(folder, 'audit', 'verify');
    expect([code, out]).toEqual([1, expect.stringContaining('an event was dropped before it')]);
  });

  test('names where the end was cut off', async () => {
    const folder = await copy('cut', (log) => {
      log.exec('DELETE FROM events WHERE position >= 6');
    });
    const { code, out } = await runCli(folder, 'audit', 'verify');
    expect([code, out]).toEqual([
      1,
      expect.stringMatching(/The log does not fit: the log ends after \d+ events/),
    ]);
  });

  test('misses a transparency log that is gone, by a checkpoint that was kept', async () => {
    const folder = await copy('untold', () => undefined);
    await rm(join(folder, 'tlog'), { recursive: true });
    const { code, out } = await runCli(folder, 'audit', 'verify', '--checkpoint', kept);
    expect([code, out]).toEqual([1, expect.stringContaining('The transparency log does not fit')]);
  });

  test('refuses a checkpoint of another log', async () => {
    const other = join(elsewhere, 'other.checkpoint');
    await writeFile(other, (await readFile(kept, 'utf8')).replaceAll('turnlog/', 'another/'));
    const { code, err } = await cli('audit', 'verify', '--checkpoint', other);
    expect([code, err]).toEqual([1, expect.stringContaining(other)]);
  });
});
