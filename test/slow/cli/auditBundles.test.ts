import { spawnSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { cp, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { chainEvents, NO_STREAM } from '../../../shared/eventlog/append.ts';
import { chainStored } from '../../support/builders/chainStored.ts';
import { decodeEvent } from '../../../shared/eventlog/codec.ts';
import { openCheckpoint } from '../../../shared/transparency/proof/openCheckpoint.ts';
import { leafEntry } from '../../../shared/transparency/tlog/leaf.ts';
import { leafHash } from '../../../shared/transparency/tlog/merkle.ts';
import { formatCheckpoint } from '../../../shared/transparency/tlog/checkpoint.ts';
import { cosign } from '../../../shared/transparency/tlog/cosignature.ts';
import { parseNote, signatureLine, signNote } from '../../../shared/transparency/tlog/note.ts';
import {
  COSIGNATURE,
  formatVkey,
  noteSigner,
  parseVkey,
} from '../../../shared/transparency/tlog/noteKeys.ts';
import { parseProof } from '../../../shared/transparency/tlog/proofFile.ts';
import { verifyInclusion } from '../../../shared/transparency/tlog/verify.ts';
import { readSigningKeys } from '../../../services/compose/signingKeys.ts';
import { writeBundleStarts, readBundleStart } from '../../../infra/files/bundleIndex.ts';
import type { Position } from '../../../shared/ports/eventStore.ts';
import { writeTar } from '../../../infra/tar/writeTar.ts';
import { startTestService, type TestService } from '../../support/http/service.ts';
import {
  runCli,
  startCli,
  startCliWith,
  type CliResult,
} from '../../support/processes/cliProcess.ts';
import { makeProofLog, type ProofLog } from '../../support/builders/proofLog.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';
import { AUTHORSHIP } from '../../support/builders/authorship.ts';

const VERIFIER = join(import.meta.dirname, '../../../examples/verify_bundle.py');
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
      /^It fits: 5 events of session_\w+; 8 texts disclosed, 0 redacted, 0 erased\./,
    );
    expect(out).toContain('proves nothing by itself');
    expect(await readdir(elsewhere)).not.toContain('nothing');
    const [vkey] = /turnlog\/\S+$/.exec((await readFile(file, 'utf8')).split('\n')[1]!) ?? [];
    const known = await alone('audit', 'verify-bundle', file, '--vkey', vkey!);
    expect([known.code, known.out.includes('proves nothing')]).toEqual([0, false]);
  });

  test('write a report for people, with the same redactions and without the agent where there are any', async () => {
    const all = join(elsewhere, 'all.html');
    await exported('all.tar', '--report', all);
    const page = await readFile(all, 'utf8');
    expect(page).toContain('Ada asks');
    expect(page).toContain('</html>');
    const some = join(elsewhere, 'some.html');
    await exported('some.tar', '--redact', '1.input', '--report', some);
    const redacted = await readFile(some, 'utf8');
    expect(redacted).not.toContain('Ada asks');
    expect(redacted).toContain('Bob asks');
    expect(redacted).toContain('Redacted: withheld from this report.');
    expect(redacted).toContain('Not shown: it was erased, or is withheld');
  });

  test('write nothing if the report can not be written', async () => {
    const report = join(elsewhere, 'mine.html');
    await writeFile(report, 'mine');
    const out = join(elsewhere, 'without-report.tar');
    const before = await readdir(elsewhere);
    const args = ['audit', 'export', '--session', session, '--out', out, '--report'];
    expect(await cli(...args, report)).toMatchObject({
      code: 1,
      err: expect.stringContaining(`${report} exists already`),
    });
    expect(await cli(...args, out, '--replace')).toMatchObject({
      code: 2,
      err: '--out and --report name the same file.\n',
    });
    expect(await readFile(report, 'utf8')).toBe('mine');
    expect(await readdir(elsewhere)).toEqual(before);
  });

  test('leave out what is redacted', async () => {
    const file = await exported('redacted.tar', '--redact', '1.input,output');
    expect(await readFile(file, 'latin1')).not.toMatch(/Ada|secret/);
    const { code, out } = await alone('--json', 'audit', 'verify-bundle', file);
    expect([code, JSON.parse(out)]).toEqual([
      0,
      expect.objectContaining({ fits: true, disclosed: 1, redacted: 7, erased: 0 }),
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

test('a fork has a bundle of its own events, which verifies here and in Python, as the log does', async () => {
  const forked = await service.post(`/v1/sessions/${session}/fork`, { at_turn: 1 });
  const { session_id, agent_id } = forked.body.data as { session_id: string; agent_id: string };
  await service.post(`/v1/agents/${agent_id}/run`, { input: 'Eve asks', session_id });
  await service.get(`/v1/sessions/${session_id}/proof`);
  const file = join(elsewhere, 'fork.tar');
  const written = await cli('audit', 'export', '--session', session_id, '--out', file);
  expect(written).toMatchObject({ code: 0 });
  const here = await alone('audit', 'verify-bundle', file);
  expect([here.code, here.out.split(';')[0]]).toEqual([0, `It fits: 3 events of ${session_id}`]);
  const { out: vkey } = await cli('audit', 'vkey');
  const by = ['-B', VERIFIER, file, vkey.trim()];
  const python = spawnSync('python3', by, { encoding: 'utf8' });
  expect([python.status, python.stderr]).toEqual([0, '']);
  expect((await cli('audit', 'verify')).code).toBe(0);
});

test('where bundles begin is missed where that is damaged, and said how to mend it', async () => {
  const { folder, session_id } = await makeProofLog({ sessions: 1, turns: 300 });
  const trees = join(folder, 'tlog');
  const tree = (await readFile(join(trees, '.current'), 'utf8')).trim();
  const bundles = join(trees, tree, 'bundles');
  const whole = await readFile(bundles);
  const after = ['audit', 'verify', '--after', '400'.padStart(16, '0')];
  expect(await runCli(folder, ...after)).toMatchObject({ code: 0 });

  await writeFile(bundles, Buffer.alloc(whole.length, 'x'));
  const out = join(elsewhere, 'none.tar');
  const refused = await runCli(folder, 'audit', 'export', '--session', session_id, '--out', out);
  const said = /does not know where bundle \d begins: .* A running server rebuilds it/;
  expect(refused).toMatchObject({ code: 1, out: '', err: expect.stringMatching(said) });
  expect((await runCli(folder, ...after)).err).toMatch(said);
  const damaged = await runCli(folder, 'audit', 'verify');
  expect(damaged).toMatchObject({
    code: 1,
    out: expect.stringContaining('bundle 1 begins after the event'),
  });

  await writeFile(bundles, whole);
  expect(await runCli(folder, 'audit', 'verify')).toMatchObject({ code: 0 });
  const behind = (await readBundleStart(bundles, 2))!;
  const moved = { ...behind, position: '9999999999999999' as Position };
  await writeBundleStarts(bundles, new Map([1, 2].map((bundle) => [bundle, moved])));
  const { code, err } = await runCli(folder, ...after);
  expect({ code, err }).toEqual({
    code: 1,
    err: expect.stringContaining('Verify the whole log, without --after.'),
  });
  await rm(folder, { recursive: true });
});

describe('Ctrl-C', () => {
  let long: ProofLog;
  beforeAll(async () => {
    long = await makeProofLog({ sessions: 1, turns: 3_000 });
  });
  afterAll(() => rm(long.folder, { recursive: true }));

  /** What a command says that is interrupted at its first progress; once more where it was faster. */
  async function interrupted(...args: string[]): Promise<CliResult> {
    const command = startCli(long.folder, ...args);
    await command.told((text) => text.includes('events '));
    command.kill('SIGINT');
    const result = await command.ended;
    return result.code === 0 ? interrupted(...args) : result;
  }
  const stopped = { code: 130, out: '', err: expect.stringMatching(/Interrupted\.\n$/) };

  test('ends an export and a verification of a bundle, and leaves nothing half', async () => {
    const out = join(elsewhere, 'long.tar');
    const written = ['audit', 'export', '--session', long.session_id, '--out', out];
    const before = await readdir(elsewhere);
    expect(await interrupted(...written)).toMatchObject(stopped);
    expect(await readdir(elsewhere)).toEqual(before);

    expect(await runCli(long.folder, ...written)).toMatchObject({ code: 0 });
    const whole = await readFile(out);
    expect(await runCli(long.folder, ...written)).toMatchObject({
      code: 1,
      err: expect.stringMatching(/long\.tar exists already and was left as it is: .*\n$/),
    });
    await interrupted(...written, '--replace');
    expect((await readFile(out)).equals(whole)).toBe(true);
    expect(await interrupted('audit', 'verify-bundle', out)).toMatchObject(stopped);
  });

  test('ends the writing of the archive as well, in which no event is read', async () => {
    const out = join(elsewhere, 'stopped.tar');
    const stop = new AbortController();
    const why = new Error('stopped');
    async function* pieces(): AsyncGenerator<string> {
      yield 'x'.repeat(1_000_000);
      setImmediate(() => stop.abort(why));
    }
    const last = { name: 'events.jsonl', pieces: pieces() };
    const content = { small: new Map(), last, modified: new Date(0), signal: stop.signal };
    const before = await readdir(elsewhere);
    await expect(writeTar(out, content)).rejects.toBe(why);
    expect(await readdir(elsewhere)).toEqual(before);
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
      expect.objectContaining({ fits: true, disclosed: 0, redacted: 0, erased: 4 }),
    ]);
    const stopped = await cli(
      'audit',
      'export',
      '--session',
      erased,
      '--out',
      file,
      '--replace',
      '--redact',
      'input',
    );
    expect(stopped).toMatchObject({ code: 0 });
  });
});

describe('audit verify, with the transparency log', () => {
  let vkey: string;
  /** An export that is refused. */
  let exporting: string[];
  beforeAll(async () => {
    ({
      vkeys: [vkey],
    } = JSON.parse((await cli('--json', 'audit', 'vkey')).out));
    exporting = ['audit', 'export', '--session', session, '--out', join(elsewhere, 'never.tar')];
  });

  /** A checkpoint that somebody has signed who has the log's key. */
  async function signed(name: string, size: number, root: Uint8Array): Promise<string> {
    const [key] = readSigningKeys(join(service.folder, 'log-signing-key.pem'));
    const { name: origin } = parseVkey(vkey);
    const file = join(elsewhere, `${name}.checkpoint`);
    const text = formatCheckpoint({ origin, size, root });
    await writeFile(file, signNote(text, [noteSigner(origin, key!)]));
    return file;
  }

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

  type Row = Record<'stream' | 'id' | 'type' | 'data' | 'metadata', string> & {
    position: number;
    revision: number;
  };
  const at = (log: DatabaseSync, revision: number): Row =>
    log
      .prepare('SELECT * FROM events WHERE stream = ? AND revision = ?')
      .get(`session-${session}`, revision) as unknown as Row;
  const put = (log: DatabaseSync, { position, stream, revision, id, type, data, metadata }: Row) =>
    log
      .prepare('INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)')
      .run(position, stream, revision, id, type, data, metadata);
  /** Makes room for one event at a position. */
  const shift = (log: DatabaseSync, from: number): void => {
    log.prepare('UPDATE events SET position = -position - 1 WHERE position >= ?').run(from);
    log.exec('UPDATE events SET position = -position WHERE position < 0');
  };
  const TEST_EVENT = { id: 'inserted', type: 'test.happened.v1', data: {} };
  test.each<[string, (log: DatabaseSync) => string, string]>([
    [
      'changed',
      (log) => {
        const { id, data } = at(log, 3);
        const other = data.replace('"turn":2', '"turn":9');
        log.prepare('UPDATE events SET data = ? WHERE id = ?').run(other, id);
        return id;
      },
      'its hash does not match its content',
    ],
    [
      'dropped',
      (log) => {
        const { id } = at(log, 2);
        log.prepare('DELETE FROM events WHERE id = ?').run(id);
        return at(log, 3).id;
      },
      'an event was dropped before it',
    ],
    [
      'swapped',
      (log) => {
        const [one, other] = [at(log, 1), at(log, 3)];
        log.prepare('DELETE FROM events WHERE id IN (?, ?)').run(one.id, other.id);
        put(log, { ...one, position: other.position });
        put(log, { ...other, position: one.position });
        return other.id;
      },
      'it was swapped or moved',
    ],
    [
      'duplicated',
      (log) => {
        const [one, before] = [at(log, 1), at(log, 3)];
        shift(log, before.position);
        put(log, { ...one, position: before.position, stream: 'session-copy', id: 'copy' });
        return 'copy';
      },
      'it is a duplicate',
    ],
    [
      'inserted',
      (log) => {
        const { position } = at(log, 3);
        shift(log, position);
        const [encoded] = chainEvents('test-1', NO_STREAM, [TEST_EVENT], AUTHORSHIP).encoded;
        put(log, { ...encoded!, position, stream: 'test-1', revision: 0 });
        return TEST_EVENT.id;
      },
      'it was inserted',
    ],
    [
      'rewritten, and all of its stream that follows',
      (log) => {
        const stream = `session-${session}`;
        let head = { revision: 1, hash: decodeEvent(at(log, 1) as never).metadata.hash };
        for (let revision = 2; revision <= 4; revision += 1) {
          const { id, type, data, metadata } = at(log, revision);
          const { prev_hash: _before, hash: _hash, ...author } = JSON.parse(metadata);
          const event = { id, type, data: { ...JSON.parse(data), turn: 7 } };
          const chained = chainStored(stream, head, event, author);
          log
            .prepare('UPDATE events SET data = ?, metadata = ? WHERE id = ?')
            .run(chained.event.data, chained.event.metadata, id);
          head = chained.head;
        }
        return at(log, 2).id;
      },
      'it was changed, and its hash with it',
    ],
  ])('names the first event that was %s', async (what, change, said) => {
    let first = '';
    const folder = await copy(what, (log) => {
      first = change(log);
    });
    const { code, out } = await runCli(folder, 'audit', 'verify');
    expect([code, out]).toEqual([1, expect.stringContaining(`The event ${first} (`)]);
    expect(out).toContain(said);
  });

  test('needs no key file where the vkey is given, and names one that can’t be used', async () => {
    const folder = await copy('unusable', () => undefined);
    const file = join(folder, 'log-signing-key.pem');
    await truncate(file, 40);
    const { code, out } = await runCli(folder, 'audit', 'verify', '--vkey', vkey);
    expect([code, out]).toEqual([0, expect.stringContaining('fits')]);
    for (const command of [
      ['audit', 'verify'],
      ['audit', 'export', '--session', session, '--out', join(folder, 'bundle.tar')],
      ['text-keys', 'reconcile'],
    ]) {
      const { code: failed, err } = await runCli(folder, ...command);
      expect([failed, err]).toEqual([
        1,
        expect.stringContaining(`The signing key file ${file} can't be used`),
      ]);
    }
  });

  test('names the key that has signed, and not a new one that comes first in the file', async () => {
    const folder = await copy('rotated', () => undefined);
    const file = join(folder, 'log-signing-key.pem');
    const { privateKey } = generateKeyPairSync('ed25519');
    const newer = String(privateKey.export({ type: 'pkcs8', format: 'pem' }));
    await writeFile(file, `${newer}${await readFile(file, 'utf8')}`);
    const out = join(elsewhere, 'rotated.tar');
    const result = await runCli(folder, 'audit', 'export', '--session', session, '--out', out);
    expect([result.code, result.out]).toEqual([0, expect.stringContaining(vkey)]);
    expect((await cli('audit', 'verify-bundle', out)).code).toBe(0);
  });

  test('misses a transparency log that is gone, by a checkpoint that was kept', async () => {
    const folder = await copy('untold', () => undefined);
    await rm(join(folder, 'tlog'), { recursive: true });
    const { code, out } = await runCli(folder, 'audit', 'verify', '--checkpoint', kept);
    expect([code, out]).toEqual([1, expect.stringContaining('The transparency log does not fit')]);
  });

  test('takes a checkpoint with the cosignatures of witnesses, and of such as nobody knows', async () => {
    const file = join(elsewhere, 'cosigned.checkpoint');
    const text = await readFile(kept, 'utf8');
    const witness = noteSigner('w/1', generateKeyPairSync('ed25519').privateKey, COSIGNATURE);
    const line = signatureLine(cosign(parseNote(text).text, witness, 1_767_225_600));
    await writeFile(file, `${text}— unknown AAAAAAAAAAAA\n${line}`);
    const { code, out } = await cli('audit', 'verify', '--checkpoint', file);
    expect([code, out]).toEqual([0, expect.stringContaining('So does the checkpoint of ')]);
    const bundle = await exported('cosigned.tar', '--checkpoint', file);
    const known = ['--vkey', vkey, '--witness', formatVkey(witness.key)];
    expect(await alone('audit', 'verify-bundle', bundle, ...known)).toMatchObject({ code: 0 });

    const absent = noteSigner('w/2', generateKeyPairSync('ed25519').privateKey, COSIGNATURE);
    const both = [...known, '--witness', formatVkey(absent.key)];
    const one = await alone('--json', 'audit', 'verify-bundle', bundle, ...both);
    expect(JSON.parse(one.out)).toMatchObject({ cosigned: ['w/1'], not_cosigned: ['w/2'] });
    const two = ['--witnesses-required', '2'];
    expect(await alone('audit', 'verify-bundle', bundle, ...both, ...two)).toMatchObject({
      code: 1,
      out: 'It does not fit. 2 of the witnesses that were given must have cosigned the checkpoint, and 1 have: w/1. Missing: w/2.\n',
    });
    // The same witness twice is one.
    const twice = [...known, '--witness', formatVkey(witness.key), ...two];
    expect(await alone('audit', 'verify-bundle', bundle, ...twice)).toMatchObject({
      code: 2,
      err: '--witnesses-required is 2, and --witness names 1 different witnesses.\n',
    });
  });

  test('is one that a bundle of a session that went on since is proven to extend', async () => {
    const before = join(elsewhere, 'before.checkpoint');
    const { body } = await service.get(`/v1/sessions/${session}/proof`);
    await writeFile(before, body.data.checkpoint as string);
    const { agent_id } = (await service.get(`/v1/sessions/${session}`)).body.data;
    await service.post(`/v1/agents/${agent_id}/run`, { input: 'Eve asks', session_id: session });
    await service.get(`/v1/sessions/${session}/proof`);
    const file = await exported('extended.tar', '--checkpoint', before);
    const [, size] = (await readFile(before, 'utf8')).split('\n');
    const verified = await alone('audit', 'verify-bundle', file, '--checkpoint', before);
    expect(verified).toMatchObject({
      code: 0,
      out: expect.stringContaining(`That tree extends the one of ${size} leaves.`),
    });
    const published = (await cli('audit', 'vkey')).out.trim();
    const by = ['-B', VERIFIER, file, published, before];
    expect(spawnSync('python3', by, { encoding: 'utf8' })).toMatchObject({ status: 0, stderr: '' });

    const other = await signed('forked', Number(size), Buffer.alloc(32, 9));
    const refused = await alone('audit', 'verify-bundle', file, '--checkpoint', other);
    expect(refused).toMatchObject({ code: 1, out: expect.stringContaining('two histories') });
    const none = join(elsewhere, 'not.tar');
    expect(
      await cli('audit', 'export', '--session', session, '--out', none, '--checkpoint', other),
    ).toMatchObject({
      code: 1,
      err: expect.stringContaining('does not extend the checkpoint'),
    });
  });

  test('goes on behind a checkpoint, and compares it all the same', async () => {
    const { out: all } = await cli('events', 'tail', '--no-follow');
    const { position } = JSON.parse(all.trim().split('\n').at(-1)!) as { position: string };
    const goOn = ['audit', 'verify', '--after', position, '--checkpoint'];
    expect((await cli(...goOn, kept)).out).toContain('So does the checkpoint of ');
    const file = await signed('other', 1, Buffer.alloc(32));
    const { code, out } = await cli(...goOn, file);
    expect([code, out]).toEqual([1, expect.stringContaining('has another root')]);
  });

  test('says of a checkpoint of more leaves that the log was cut off', async () => {
    const file = await signed('larger', 100_000, Buffer.alloc(32));
    const { code, out } = await cli('audit', 'verify', '--checkpoint', file);
    expect([code, out]).toEqual([1, expect.stringMatching(/the log ends after \d+ events/)]);
    const refused = await cli(...exporting, '--checkpoint', file);
    expect([refused.code, refused.err]).toEqual([
      1,
      expect.stringMatching(/is of 100000 leaves, and the transparency log has \d+\./),
    ]);
  });

  test.each<[string, (text: string) => string]>([
    ['another log', (text) => text.replaceAll('turnlog/', 'another/')],
    ['another key', (text) => text.replace(/(— \S+ ).*/, '$1AAAAAAAAAAAA')],
    ['nobody', (text) => text.split('\n\n')[0]!],
    ['no kind', () => 'garbage'],
    ['no length', () => ''],
    ['bytes', () => '\u0000\ufffd'.repeat(1_000)],
  ])(
    'is not read with a checkpoint of %s, nor is anything exported under it',
    async (what, change) => {
      const file = join(elsewhere, `${what}.checkpoint`);
      await writeFile(file, change(await readFile(kept, 'utf8')));
      for (const args of [['audit', 'verify'], exporting]) {
        const { code, out, err } = await cli(...args, '--checkpoint', file);
        expect([code, out, err]).toEqual([1, '', expect.stringContaining(`${file}: `)]);
      }
      expect(await readdir(elsewhere)).not.toContain('never.tar');
    },
  );
});
