/**
 * Somebody who has a redacted bundle, or a copy of the stores after an erasure, guesses short
 * texts, and recomputes every hash of them that the service or its model provider may have stored.
 */
import { createHash, createHmac } from 'node:crypto';
import { readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { liveSchema, VERSION } from '../../../infra/postgres/readModels/schema.ts';
import { canonicalJson } from '../../../shared/eventlog/canonicalJson.ts';
import { contentHmac, idempotentRequestId } from '../../../shared/requests/idempotency.ts';
import { labelToken } from '../../../shared/sessions/labelToken.ts';
import { startScriptedModel, type ScriptedModel } from '../../support/fakes/scriptedModel.ts';
import { apiClient, TEST_KEY, type Client } from '../../support/http/service.ts';
import { runCliWith } from '../../support/processes/cliProcess.ts';
import { eventually } from '../../support/processes/operator.ts';
import { startServerProcess, type ServerProcess } from '../../support/processes/serverProcess.ts';
import { execute, type TestDatabase } from '../../support/servers/postgres/postgresDatabase.ts';
import { forgedStores, type ForgedStores } from '../../support/stores/forger/forgedService.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

const ACCOUNT = 'acct_00000000000000000000000000';
/** Texts of which there are few. The answers of the offline model follow from its prompts. */
const PROMPTS = ['Is 12*34 my pin?', 'Fired Ada?', 'Is Ada ill?'];
const TITLE = 'Ada resigns';
const LABEL = { name: 'diagnosis', value: 'flu' };
const IDEMPOTENCY_KEY = '1';

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

let folder: string;
let stores: ForgedStores;
let echo: ScriptedModel;
let server: ServerProcess;
let client: Client;
const sessions: string[] = [];
const paths: string[] = [];
/** What the guesser knows or guesses: the texts, and all that was made of them. */
const guesses = new Map<string, string>();

/** A provider whose ids are hashes of the prompt, whose tools are named by it, and whose errors quote it. */
const hostile = (content: string, answers: number) => ({
  respond(response: import('node:http').ServerResponse) {
    const [id, quoted] = [sha256(content), content.replaceAll(/\W+/g, '_')];
    const message =
      answers === 0
        ? {
            content: null,
            tool_calls: [
              { id, type: 'function', function: { name: `tell_${quoted}`, arguments: '{}' } },
            ],
          }
        : { content: `Yes: ${content}` };
    const choices = [{ index: 0, message, finish_reason: content }];
    const refused = JSON.stringify({
      error: { message: `No: ${content}`, type: content, code: quoted, param: content },
    });
    response.writeHead(answers > 1 ? 400 : 200, { 'content-type': 'application/json' });
    response.end(answers > 1 ? refused : JSON.stringify({ id, model: content, choices }));
  },
});

async function converse(model: string, index: number): Promise<void> {
  const input = PROMPTS[index]!;
  const { agent_id } = (
    await client.post('/v1/agents', {
      name: 'Desk',
      instruction: 'Help.',
      model,
      ...(index === 0 && { tool: 'calculator' }),
    })
  ).body.data;
  const path = `/v1/agents/${agent_id}/run`;
  paths.push(path);
  const { status, body } = await client.post(
    path,
    { input },
    { 'idempotency-key': IDEMPOTENCY_KEY, 'x-request-id': `ask:${sha256(input)}` },
  );
  expect(status).toBe(200);
  const { session_id, output } = body.data;
  sessions.push(session_id);
  if (model === 'hostile')
    expect((await client.post(path, { input, session_id })).body.code).toBe('model_error');
  const description = { title: TITLE, labels: { [LABEL.name]: LABEL.value } };
  const described = await client.send('PATCH', `/v1/sessions/${session_id}`, description);
  expect(described.status).toBe(200);
  guesses.set('prompt', input).set('answer', output).set('title', TITLE);
  for (const text of [input, output]) guesses.set(`text ${index} ${text.slice(0, 9)}`, text);
  for (const turn of [1, 2]) {
    const { data } = (await client.get(`/v1/sessions/${session_id}/turns/${turn}/requests`)).body;
    for (const { request, call } of (data ?? []) as { request: object; call: number }[]) {
      guesses.set(`request ${index}.${turn}.${call}`, canonicalJson(request));
      guesses.set(`request as sent ${index}.${turn}.${call}`, JSON.stringify(request));
    }
  }
  for (const [at, sent] of (index === 1 ? echo.bodies : []).entries())
    guesses.set(`body ${at}`, sent);
  const keyed = { key: IDEMPOTENCY_KEY, account_id: ACCOUNT, method: 'POST', path };
  guesses.set(`idempotent ${index}`, contentHmac(keyed, { query: {}, body: { input } }));
}

/** Every digest of a guess, as far as it is surely no chance to find it. */
function* digestsOf(text: string): Generator<string> {
  for (const algorithm of ['md5', 'sha1', 'sha256', 'sha512']) {
    const digests = [
      createHash(algorithm).update(text).digest(),
      createHmac(algorithm, IDEMPOTENCY_KEY).update(text).digest(),
      createHmac(algorithm, ACCOUNT).update(text).digest(),
    ];
    for (const digest of digests)
      for (const form of ['hex', 'base64', 'base64url'] as const)
        yield digest.toString(form).slice(0, 14);
  }
}

/** The guesses that bytes confirm: by a digest, by the label's token, or as they are. */
function confirmedBy(bytes: Buffer): string[] {
  const confirmed = [...guesses].flatMap(([name, guess]) => {
    const forms = [guess, guess.replaceAll(/\W+/g, '_'), ...digestsOf(guess)];
    return forms.some((form) => bytes.includes(form)) ? [name] : [];
  });
  const token = labelToken(ACCOUNT, LABEL.name, LABEL.value);
  return bytes.includes(token) ? [...confirmed, 'label'] : confirmed;
}

/** The tables of a database, with the bytes that they hold, as they are and in hex. */
async function* tables({ url }: TestDatabase): AsyncGenerator<[string, Buffer]> {
  const names = await execute(
    url,
    `SELECT schemaname || '.' || tablename AS name FROM pg_tables WHERE schemaname LIKE 'turnlog%'`,
  );
  for (const { name } of names) {
    const rows = await execute(url, `SELECT r::text AS text FROM ${String(name)} r`);
    const text = rows.map((row) => String(row['text'])).join('\n');
    const bytes = [...text.matchAll(/\\x([\da-f]+)/g)].map(([, hex]) => Buffer.from(hex!, 'hex'));
    yield [String(name), Buffer.concat([Buffer.from(text), ...bytes])];
  }
}

/** By file and table of the stores: the guesses that it confirms. */
async function confirmedInStores(withRows = true): Promise<Record<string, string[]>> {
  const found: Record<string, string[]> = {};
  const look = (name: string, bytes: Buffer): void => {
    const confirmed = confirmedBy(bytes);
    if (confirmed.length > 0) found[name] = confirmed;
  };
  const files = await readdir(stores.folder, { recursive: true, withFileTypes: true });
  for (const file of files.filter((entry) => entry.isFile()))
    if (withRows || !file.parentPath.endsWith('read-models'))
      look(
        file.name,
        await readFile(join(file.parentPath, file.name)).catch(() => Buffer.alloc(0)),
      );
  if (stores.database)
    for await (const [name, bytes] of tables(stores.database))
      if (withRows || !name.startsWith(`${liveSchema(VERSION)}.`)) look(name, bytes);
  return found;
}

async function bundle(session: string, ...options: string[]): Promise<Buffer> {
  const out = join(folder, `${session}.tar`);
  const exported = ['audit', 'export', '--replace', '--session', session, '--out', out, ...options];
  expect(await runCliWith(stores.env, ...exported)).toMatchObject({ code: 0 });
  return readFile(out);
}

describe.each(await forgedStores())('with $name', ({ open }) => {
  beforeAll(async () => {
    for (const known of [sessions, paths]) known.length = 0;
    guesses.clear();
    [folder, stores] = await Promise.all([temporaryFolder(), open()]);
    let answers = -1;
    echo = await startScriptedModel(({ messages }) => {
      answers += 1;
      return hostile(messages.findLast(({ role }) => role === 'user')!.content!, answers);
    });
    const models = ['offline', 'hostile'].map((provider) => ({
      id: provider,
      provider,
      upstream_model: provider === 'offline' ? 'offline-echo' : 'm',
      context_window: 100_000,
    }));
    const providers = { hostile: { base_url: echo.baseUrl } };
    const file = join(folder, 'models.json');
    await writeFile(file, JSON.stringify({ providers, models }));
    server = startServerProcess({
      ...stores.env,
      MODELS_FILE: file,
      BOOTSTRAP_API_KEY: TEST_KEY,
      LOG_LEVEL: 'trace',
    });
    client = apiClient(await server.ready, TEST_KEY);
    for (const [index, model] of ['offline', 'hostile', 'offline'].entries())
      await converse(model, index);
  });
  afterAll(async () => {
    server.kill('SIGKILL');
    await server.exited;
    await echo.close();
    await stores.close();
    await rm(folder, { recursive: true });
  });

  test('a bundle confirms guesses where it discloses the texts', async () => {
    for (const session of sessions) expect(confirmedBy(await bundle(session))).not.toEqual([]);
  });

  test('a redacted bundle confirms no guess', async () => {
    // A field that a session does not have can't be redacted.
    const more = [',arguments,result,tool', ',arguments,result,tool,message', ''];
    for (const [index, session] of sessions.entries()) {
      const options = ['--redact', `input,output,title${more[index]}`];
      expect([index, confirmedBy(await bundle(session, ...options))]).toEqual([index, []]);
    }
  });

  test('the log, its tree and the service’s own lines confirm none', async () => {
    expect(await confirmedInStores(false)).toEqual({});
    // The access log has the ids of requests as clients gave them, which the log of events has not.
    const lines = server.errors().split('\n');
    const others = lines.filter((line) => !line.includes('"request_id":"ask:'));
    expect(lines.length).toBeGreaterThan(others.length);
    expect(confirmedBy(Buffer.from(others.join('\n')))).toEqual([]);
  });

  test('nothing that is left after an erasure confirms a guess', async () => {
    expect(await confirmedInStores()).not.toEqual({});
    for (const session of sessions)
      expect((await client.send('DELETE', `/v1/sessions/${session}`, '')).status).toBe(200);
    expect(await eventually(confirmedInStores, (found) => Object.keys(found).length === 0)).toEqual(
      {},
    );
  }, 60_000);

  test('what stays are sizes, counts and times, and the names of the streams of requests', async () => {
    const log = JSON.stringify(stores.forger.events());
    expect(log.includes('"tokens":{"completion":')).toBe(true);
    for (const path of paths) {
      const keyed = { key: IDEMPOTENCY_KEY, account_id: ACCOUNT, method: 'POST', path };
      expect(log.includes(`request-${idempotentRequestId(keyed)}`)).toBe(true);
    }
  });
});
