import { randomUUID } from 'node:crypto';
import { copyFile, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { openSqliteEventStore } from '../../../infra/sqlite/eventStore/eventStore.ts';
import { chainEvents, NO_STREAM } from '../../../shared/eventlog/append.ts';
import { chainStored } from '../../support/builders/chainStored.ts';
import { runCli, startCli, type CliResult } from '../../support/processes/cliProcess.ts';
import { startTestService, type TestService } from '../../support/http/service.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';
import { AUTHORSHIP } from '../../support/builders/authorship.ts';

/** What every verification without heads ends with. */
const UNSEEN = `A chain does not show that a whole stream was deleted, that the newest events of one were cut off, or that one was rewritten with new hashes.
Heads kept outside show it: write them with \`audit heads --out <file>\`, compare with \`audit verify --heads <file>\`.
`;

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

/** The event of the session at a revision, as the running service's log has it. */
function recorded(revision: number): { id: string; position: string } {
  const live = new DatabaseSync(join(service.folder, 'events.db'), { readOnly: true });
  const event = live
    .prepare('SELECT id, position FROM events WHERE stream = ? AND revision = ?')
    .get(`session-${session}`, revision) as { id: string; position: number };
  live.close();
  return { id: event.id, position: String(event.position).padStart(16, '0') };
}

const STREAMS = 150;
const EACH = 400;

/** A log that takes a while to read. */
async function longLog(): Promise<string> {
  const folder = join(elsewhere, randomUUID());
  const store = await openSqliteEventStore({ folder });
  for (let stream = 0; stream < STREAMS; stream += 1) {
    const history = Array.from({ length: EACH }, () => ({
      id: randomUUID(),
      type: 'test.happened.v1',
      data: { stream },
    }));
    await store.append(
      `test-${stream}`,
      'no_stream',
      chainEvents(`test-${stream}`, NO_STREAM, history, AUTHORSHIP).encoded,
    );
  }
  await store.close();
  return folder;
}

/**
 * What a command that is interrupted at its first progress says. On a busy machine it may have come
 * to its end before the signal came: then once more.
 */
async function interrupted(folder: string, ...args: string[]): Promise<CliResult> {
  const command = startCli(folder, ...args);
  await command.told((text) => text.includes('events '));
  command.kill('SIGINT');
  const result = await command.ended;
  return result.code === 0 ? interrupted(folder, ...args) : result;
}

/** A consistent copy of the running service's log, changed by `tamper`. */
/** A copy of the log alone, as one that was never signed unless told otherwise. */
async function copyOfLog(
  name: string,
  tamper: (log: DatabaseSync) => void,
  signed?: 'signed',
): Promise<string> {
  const folder = join(elsewhere, name);
  await mkdir(folder);
  const live = new DatabaseSync(join(service.folder, 'events.db'), { readOnly: true });
  live.exec(`VACUUM INTO '${join(folder, 'events.db')}'`);
  live.close();
  const copy = new DatabaseSync(join(folder, 'events.db'));
  tamper(copy);
  if (!signed) copy.exec("DELETE FROM events WHERE type = 'log.tree_declared.v1'");
  copy.close();
  return folder;
}

describe('audit verify', () => {
  test('says that every event fits, beside a running server', async () => {
    const { code, out, err } = await runCli(service.folder, 'audit', 'verify');
    expect(code).toBe(0);
    expect(out).toMatch(
      /^Every event fits its hash chain\.\nThe transparency log fits, of \d+ leaves(; \d+ events came later)?\.\nOnly a checkpoint kept elsewhere reveals .*\n$/,
    );
    expect(err).toMatch(/^\d+ events verified\n$/m);
  });

  test.each([
    [
      'one byte of its data was changed',
      "UPDATE events SET data = replace(data, '\"turn\":3', '\"turn\":4') WHERE data LIKE '%\"turn\":3%' AND type = 'session.turn_started.v1' AND stream = 'THE SESSION'",
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
      'the key that wrote it was changed',
      "UPDATE events SET metadata = json_set(metadata, '$.key_id', 'key_another') WHERE revision = 4 AND stream = 'THE SESSION'",
      4,
      'its hash does not match its content',
    ],
    [
      'its metadata was given one more member',
      "UPDATE events SET metadata = json_set(metadata, '$.approved_by', 'key_another') WHERE revision = 1 AND stream = 'THE SESSION'",
      1,
      'its hash does not match its content',
    ],
    [
      'the owner of its turn was changed',
      "UPDATE events SET data = json_set(data, '$.owner', 'another') WHERE revision = 1 AND stream = 'THE SESSION'",
      1,
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
      "it can't be decoded",
    ],
    [
      'the one before it was removed',
      "DELETE FROM events WHERE revision = 4 AND stream = 'THE SESSION'",
      5,
      'its revision is 5 instead of 4',
    ],
  ])(
    'names the first event that does not fit, with exit code 1, when %s',
    async (what, sql, revision, reason) => {
      const folder = await copyOfLog(what, (log) => {
        expect(log.prepare(sql.replace('THE SESSION', `session-${session}`)).run().changes).toBe(1);
      });
      const { code, out } = await runCli(folder, 'audit', 'verify');
      const { id, position } = recorded(revision);
      expect({ code, out }).toEqual({
        code: 1,
        out: `The event ${id} (session-${session} revision ${revision}, position ${position}) does not fit: ${reason}.\n${UNSEEN}`,
      });
    },
  );

  describe('with --texts', () => {
    /** The log with its keys, and a session of it that was erased. */
    const copyWithKeys = async (what: string, sql?: string): Promise<string> => {
      const folder = await copyOfLog(what, (log) => {
        if (sql !== undefined)
          expect(
            log.prepare(sql.replaceAll('THE SESSION', `session-${session}`)).run().changes,
          ).toBe(1);
      });
      for (const name of ['keys.db', 'keys.db-wal', 'master.key'])
        await copyFile(join(service.folder, name), join(folder, name));
      return folder;
    };
    let erased: string;
    beforeAll(async () => {
      erased = (await service.post(`/v1/agents/${agent}/run`, { input: 'bye' })).body.data
        .session_id as string;
      await service.send('DELETE', `/v1/sessions/${erased}`, '');
    });

    test('opens every text, of erased ones only what says so', async () => {
      const folder = await copyWithKeys('whole');
      const { code, out } = await runCli(folder, 'audit', 'verify', '--texts');
      expect([code, out.split('\n').slice(0, 2)]).toEqual([
        0,
        ['Every event fits its hash chain.', 'Every text is what was committed to, or erased.'],
      ]);
    });

    test('makes no keys where there are none, and says so', async () => {
      const folder = await copyOfLog('without keys', () => undefined);
      const before = await readdir(folder);
      const { code, out, err } = await runCli(folder, 'audit', 'verify', '--texts');
      expect({ code, out }).toEqual({ code: 1, out: '' });
      expect(err).toContain(`The keys of texts are not here: there is no ${folder}/keys.db.`);
      await copyFile(join(service.folder, 'keys.db'), join(folder, 'keys.db'));
      expect((await runCli(folder, 'audit', 'verify', '--texts')).err).toContain('/master.key.');
      expect(new Set(await readdir(folder))).toEqual(new Set([...before, 'keys.db']));
    });

    const THIRD = "WHERE revision = 3 AND stream = 'THE SESSION'";
    test.each([
      [
        'a box was changed',
        `UPDATE events SET data = replace(data, '","sha256"', 'AAAA","sha256"') ${THIRD}`,
        "a ciphertext can't be decrypted with its key",
      ],
      [
        'a box was exchanged',
        `UPDATE events SET data = json_set(data, '$.input.box', (SELECT data ->> '$.input.box' FROM events WHERE revision = 1 AND stream = 'THE SESSION')) ${THIRD}`,
        'a ciphertext holds another text',
      ],
      [
        'a box was taken away',
        `UPDATE events SET data = json_remove(data, '$.input.box') ${THIRD}`,
        'its ciphertext is missing',
      ],
      [
        'a box was given a key that never was',
        `UPDATE events SET data = json_set(data, '$.input.box', 'never-was-a-key-' || substr(data ->> '$.input.box', 17)) ${THIRD}`,
        'The key never-was-a-key- of texts in the log was lost: it is not in this key store',
      ],
      [
        'a box was given a key that is destroyed',
        `UPDATE events SET data = json_set(data, '$.input.box', (SELECT data ->> '$.key_ids[0]' FROM events WHERE type = 'session.erased.v1') || substr(data ->> '$.input.box', 17)) ${THIRD}`,
        'the key of a text is destroyed, but its stream records no erasure',
      ],
    ])('names the event where %s', async (what, sql, reason) => {
      const folder = await copyWithKeys(what, sql);
      const { code, out } = await runCli(folder, 'audit', 'verify', '--texts');
      const named = `The event ${recorded(3).id} (session-${session} revision 3,`;
      expect([code, out]).toEqual([1, expect.stringContaining(named)]);
      expect(out).toContain(`does not fit: ${reason}`);
    });
  });

  test('tells how to go on when it is interrupted, with exit code 130, and goes on from there', async () => {
    const folder = await longLog();
    const { code, out, err } = await interrupted(folder, 'audit', 'verify');
    expect({ code, out }).toEqual({ code: 130, out: UNSEEN });
    const [, done, after] =
      /Interrupted after (\d+) events\. Go on with: audit verify --after (\S+)\n$/.exec(err)!;
    expect(Number(done)).toBeLessThan(STREAMS * EACH);

    const rest = await runCli(folder, 'audit', 'verify', '--after', after!);
    expect({ code: rest.code, out: rest.out }).toEqual({
      code: 0,
      out: `Every event fits its hash chain.\n${UNSEEN}`,
    });
    expect(rest.err).toContain(`${STREAMS * EACH - Number(done)} events verified\n`);
  });
});

/** Says of a session's turns that another process ran them, and gives all events hashes that fit. */
function rewriteConsistently(log: DatabaseSync): void {
  const stream = `session-${session}`;
  const rows = log
    .prepare('SELECT id, type, data, metadata FROM events WHERE stream = ? ORDER BY revision')
    .all(stream) as Array<{ id: string; type: string; data: string; metadata: string }>;
  let head = NO_STREAM;
  for (const { id, type, data, metadata } of rows) {
    const { prev_hash: _before, hash: _hash, ...authorship } = JSON.parse(metadata);
    const before = JSON.parse(data) as object;
    const event = {
      id,
      type,
      data: type === 'session.turn_started.v1' ? { ...before, owner: 'another' } : before,
    };
    const chained = chainStored(stream, head, event, authorship);
    log
      .prepare('UPDATE events SET data = ?, metadata = ? WHERE id = ?')
      .run(chained.event.data, chained.event.metadata, id);
    head = chained.head;
  }
}

/** Writes the heads of the running service's log to a new file. */
async function keepHeads(name: string): Promise<string> {
  const file = join(elsewhere, name);
  const { code, out, err } = await runCli(service.folder, 'audit', 'heads', '--out', file);
  const lines = (await readFile(file, 'utf8')).split('\n');
  const { sha256 } = JSON.parse(lines.at(-2)!) as { sha256: string };
  expect(code).toBe(0);
  expect(out.startsWith(`${file} has the heads of ${lines.length - 3} streams. `)).toBe(true);
  expect(out.endsWith(`: ${sha256}\n`)).toBe(true);
  expect(err).toMatch(/^\d+ heads written\n$/m);
  return file;
}

describe('heads that are kept outside', () => {
  test('are the last event of every stream, and the same lines every time', async () => {
    const [one, two] = [await keepHeads('one.jsonl'), await keepHeads('two.jsonl')];
    const lines = async (file: string) => (await readFile(file, 'utf8')).split('\n').slice(1, -2);
    expect(await lines(one)).toEqual(await lines(two));
    const { data } = (await service.get(`/v1/sessions/${session}/events`)).body;
    const last = data.at(-1) as { revision: number; metadata: { hash: string } };
    expect((await lines(one)).map((line) => JSON.parse(line))).toContainEqual({
      stream: `session-${session}`,
      revision: last.revision,
      hash: last.metadata.hash,
    });
  });

  test('are all found again in a log that has grown since', async () => {
    const file = await keepHeads('grown.jsonl');
    const { at } = JSON.parse((await readFile(file, 'utf8')).split('\n')[0]!) as { at: string };
    await service.post(`/v1/agents/${agent}/run`, { input: 'more', session_id: session });
    await service.createAgent();
    const { code, out } = await runCli(service.folder, 'audit', 'verify', '--heads', file);
    const [chains, tree, _together, heads, unseen, ...rest] = out.split('\n');
    expect(tree).toContain('The transparency log fits');
    expect([code, chains, rest]).toEqual([0, 'Every event fits its hash chain.', ['']]);
    expect(heads).toMatch(/^All \d+ heads of .* are in the log\. Their sha256: [0-9a-f]{64}$/);
    expect(unseen).toContain(`Of what was written after ${at}`);
  });

  test.each<[string, (log: DatabaseSync) => void, RegExp, string]>([
    [
      'deleted',
      (log) => log.prepare("DELETE FROM events WHERE stream = 'session-' || ?").run(session),
      /^The stream session-\w+ was deleted: it had come to revision \d+ \(hash [0-9a-f]{64}\)\.$/,
      '1 deleted, 0 cut, 0 rewritten',
    ],
    [
      'cut',
      (log) =>
        log
          .prepare("DELETE FROM events WHERE stream = 'session-' || ? AND revision > 4")
          .run(session),
      /^The stream session-\w+ was cut: it had come to revision \d+ \(hash [0-9a-f]{64}\), and ends at revision 4 now\.$/,
      '0 deleted, 1 cut, 0 rewritten',
    ],
    [
      'rewritten with hashes that fit',
      rewriteConsistently,
      /^The stream session-\w+ was rewritten: its event at revision \d+ \(hash [0-9a-f]{64}\) has another hash now\.$/,
      '0 deleted, 0 cut, 1 rewritten',
    ],
  ])('show a stream that was %s, which its chain does not', async (what, tamper, told, counted) => {
    const file = await keepHeads(`${what}.jsonl`);
    const name = `log with one ${what}`;
    const folder = await copyOfLog(name, tamper);
    expect(await runCli(folder, 'audit', 'verify')).toMatchObject({
      code: 0,
      out: `Every event fits its hash chain.\n${UNSEEN}`,
    });
    const signed = await copyOfLog(`signed ${name}`, tamper, 'signed');
    const { code, out } = await runCli(signed, 'audit', 'verify', '--heads', file);
    const [chains, missing, first, counts] = out.split('\n');
    expect(missing).toContain('The transparency log turnlog/');
    expect([code, chains]).toEqual([1, 'Every event fits its hash chain.']);
    expect(first).toMatch(told);
    expect(first).toContain(session);
    expect(counts).toMatch(/^1 of \d+ streams do not fit the heads of /);
    expect(counts).toContain(counted);
  });

  test('are said to be of another log where they are', async () => {
    const file = await keepHeads('other.jsonl');
    const other = join(elsewhere, 'another');
    await (await openSqliteEventStore({ folder: other })).close();
    const { code, out } = await runCli(other, 'audit', 'verify', '--heads', file);
    expect(code).toBe(1);
    expect(out).toMatch(
      /^The heads are of a log that begins with the event \S+; this one is empty: it is another log/m,
    );
  });

  test('are refused in a sentence where they are not whole, before the log is read', async () => {
    const file = await keepHeads('half.jsonl');
    await writeFile(file, (await readFile(file, 'utf8')).slice(0, -80));
    const { code, out, err } = await runCli(service.folder, 'audit', 'verify', '--heads', file);
    expect({ code, out }).toEqual({ code: 1, out: '' });
    expect(err).toMatch(/^\S+half\.jsonl: These are no heads to compare with: [^.]*\.\n$/);
  });

  test('are not written by a command that is interrupted, with exit code 130', async () => {
    const folder = await longLog();
    const file = join(folder, 'heads.jsonl');
    expect(await interrupted(folder, 'audit', 'heads', '--out', file)).toMatchObject({
      code: 130,
      out: '',
      err: expect.stringMatching(/Interrupted\.\n$/),
    });
    expect((await readdir(folder)).filter((name) => name.includes('.partial'))).toEqual([]);
  });
});
