/** Someone with write access to the database of the read models changes rows. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { hashApiKey } from '../../../shared/accounts/apiKey.ts';
import { apiClient, type Client, type Reply } from '../../support/http/service.ts';
import { runCliWith } from '../../support/processes/cliProcess.ts';
import { eventually } from '../../support/processes/operator.ts';
import { forgedStores, type ForgedService } from '../../support/stores/forger/forgedService.ts';
import { rowForger, type RowForger } from '../../support/stores/forger/rowForger.ts';

const FORGED = 'This was never said.';

const kinds = await forgedStores();

describe.each(kinds)('changed rows on $name', ({ start }) => {
  let service: ForgedService;
  let forger: RowForger;
  /** A client with a key that no attack concerns. */
  let other: Client;
  beforeEach(async () => {
    service = await start();
    forger = rowForger(service.env);
    other = apiClient(service.url, service.key);
  });
  afterEach(() => service.close());

  const cli = async (...args: string[]) => {
    const { code, out, err } = await runCliWith(service.env, '--json', ...args);
    if (out === '') throw new Error(err);
    return { code, answer: JSON.parse(out) as Record<string, any> };
  };
  const verify = () => cli('projections', 'verify');

  /** Issues a key to the account of the service's own. */
  async function issue(): Promise<{ key_id: string; api_key: string }> {
    const { answer } = await cli('keys', 'issue');
    return { key_id: answer['key_id'] as string, api_key: answer['api_key'] as string };
  }

  const untilServed = (client: Client): Promise<Reply> =>
    eventually(
      () => client.get('/v1/agents'),
      ({ status }) => status === 200,
    );

  /** What the service says of its rows. */
  const damagedRows = async (): Promise<{ table: string; key: string; column: string }[]> =>
    (await service.get('/health/ready')).body.data.damaged_rows?.rows ?? [];

  async function session(): Promise<{ agent_id: string; session_id: string }> {
    const agent_id = await service.createAgent();
    const { body } = await service.post(`/v1/agents/${agent_id}/run`, { input: 'Hi.' });
    const { session_id } = body.data;
    await eventually(
      () => service.get(`/v1/sessions/${session_id}`),
      (reply) => reply.body.data?.turns?.[0]?.status === 'completed',
    );
    // A search waits for the index, which is made of the rows.
    await service.get('/v1/sessions?q=hi');
    return { agent_id, session_id };
  }

  /** The answer once the service has read changed rows: it keeps rows for a moment, or until a change. */
  async function untilRead(ask: () => Promise<Reply>): Promise<Reply> {
    const agent = { name: 'Another', instruction: 'Wait.', model: 'scripted' };
    const { body } = await other.post('/v1/agents', agent);
    await other.send('PATCH', `/v1/agents/${body.data.agent_id}`, { name: 'Changed' });
    return eventually(ask, ({ status }) => status !== 200);
  }

  test('a forged output is not shown, and the rebuild shows the real one', async () => {
    const { session_id } = await session();
    await forger.run('UPDATE {turns} SET output = ? WHERE session_id = ?', FORGED, session_id);
    const reply = await service.get(`/v1/sessions/${session_id}`);
    expect([reply.status, reply.body.code]).toEqual([503, 'read_model_damaged']);
    expect(JSON.stringify(reply.body)).not.toContain(FORGED);
    expect(await damagedRows()).toEqual([
      { table: 'turns', key: `${session_id}/1`, column: 'output' },
    ]);
    const found = await verify();
    expect(found).toMatchObject({
      code: 1,
      answer: { differing: 1, first: [{ table: 'turns', column: 'output' }] },
    });
    expect(JSON.stringify(found.answer)).not.toContain(FORGED);
    expect((await cli('projections', 'rebuild')).code).toBe(0);
    await eventually(
      () => service.get(`/v1/sessions/${session_id}`),
      ({ status, body }) => status === 200 && body.data.turns[0].output === 'Hello.',
    );
    expect(await verify()).toMatchObject({ code: 0, answer: { complete: true, differing: 0 } });
    await eventually(damagedRows, (rows) => rows.length === 0);
  }, 60_000);

  test('an API key whose row was changed gives no access, and gives it again when that is undone', async () => {
    const issued = await issue();
    const client = apiClient(service.url, issued.api_key);
    const attacker = apiClient(service.url, 'known to the attacker');
    const changes: [string, string][] = [
      ['hash', hashApiKey('known to the attacker')],
      ['scopes', '["audit:read"]'],
      ['revoked_at', '2026-01-01T00:00:00.000Z'],
      ['expires_at', '2099-01-01T00:00:00.000Z'],
    ];
    for (const [column, value] of changes) {
      await untilServed(client);
      const where = 'WHERE key_id = ?';
      await forger.run(`CREATE TABLE {saved} AS SELECT * FROM {api_keys} ${where}`, issued.key_id);
      await forger.run(`UPDATE {api_keys} SET ${column} = ? ${where}`, value, issued.key_id);
      const reply = await untilRead(() => client.get('/v1/agents'));
      expect([reply.status, reply.body.code]).toEqual([503, 'read_model_damaged']);
      expect((await attacker.get('/v1/agents')).status).toBe(column === 'hash' ? 503 : 401);
      expect(await damagedRows()).toEqual([{ table: 'api_keys', key: issued.key_id, column }]);
      expect(await verify()).toMatchObject({
        code: 1,
        answer: { differing: 1, first: [{ table: 'api_keys', key: issued.key_id, column }] },
      });
      await forger.run(`DELETE FROM {api_keys} ${where}`, issued.key_id);
      await forger.run('INSERT INTO {api_keys} SELECT * FROM {saved}');
      await forger.run('DROP TABLE {saved}');
    }
    await untilServed(client);
    expect(await damagedRows()).toEqual([]);
  }, 60_000);

  test('an agent whose instruction was changed does not run, and is not shown', async () => {
    const { agent_id } = await session();
    await forger.run('UPDATE {agents} SET instruction = ? WHERE agent_id = ?', FORGED, agent_id);
    const shown = await untilRead(() => service.get(`/v1/agents/${agent_id}`));
    const calls = service.model.requests.length;
    for (const reply of [shown, await service.post(`/v1/agents/${agent_id}/run`, { input: 'Hi.' })])
      expect([reply.status, reply.body.code]).toEqual([503, 'read_model_damaged']);
    expect(service.model.requests).toHaveLength(calls);
    expect(await damagedRows()).toMatchObject([{ table: 'agents', column: 'instruction' }]);
    expect((await cli('projections', 'rebuild')).code).toBe(0);
    await eventually(
      () => service.post(`/v1/agents/${agent_id}/run`, { input: 'Hi.' }),
      ({ status }) => status === 200,
    );
  }, 60_000);

  test('a key that no event issued gives no access, and limits that no event set do not hold', async () => {
    const agent_id = await service.createAgent();
    await forger.run(
      `INSERT INTO {api_keys} SELECT 'key_01hzzzzzzzzzzzzzzzzzzzzzzz', account_id, name, ?, scopes, issued_at, issued_by, expires_at, replaced_by, revoked_at, revoked_by, revision FROM {api_keys}`,
      hashApiKey('known to the attacker'),
    );
    const attacker = apiClient(service.url, 'known to the attacker');
    expect((await attacker.get('/v1/agents')).body.code).toBe('read_model_damaged');
    await forger.run(`UPDATE {accounts} SET limits = '{"prompt_bytes":1}'`);
    await eventually(
      async () => (await service.get('/v1/agents'), await damagedRows()),
      (rows) => rows.length === 2,
    );
    const run = await service.post(`/v1/agents/${agent_id}/run`, { input: 'Hi.' });
    expect(run.status).toBe(200);
    expect(await verify()).toMatchObject({
      code: 1,
      answer: {
        differing: 2,
        first: [
          { table: 'accounts', column: 'limits' },
          { table: 'api_keys', column: 'unrecorded' },
        ],
      },
    });
  }, 60_000);

  test('the row of a key from before it was revoked gives no access again', async () => {
    const { api_key, key_id } = await issue();
    const client = apiClient(service.url, api_key);
    await untilServed(client);
    const [{ revision } = {}] = await forger.run(
      'SELECT revision FROM {api_keys} WHERE key_id = ?',
      key_id,
    );
    await cli('keys', 'revoke', key_id);
    await eventually(
      () => client.get('/v1/agents'),
      ({ status }) => status === 401,
    );
    await forger.run(
      `UPDATE {api_keys} SET revoked_at = NULL, revision = ${Number(revision)} WHERE key_id = ?`,
      key_id,
    );
    await other.post('/v1/agents', { name: 'Another', instruction: 'Wait.', model: 'scripted' });
    expect((await client.get('/v1/agents')).status).toBe(401);
    await service.restart();
    expect((await apiClient(service.url, api_key).get('/v1/agents')).status).toBe(401);
    expect(await verify()).toMatchObject({ code: 1, answer: { differing: 1 } });
    await eventually(damagedRows, (rows) => rows.some(({ table }) => table === 'api_keys'));
  }, 60_000);

  test('unread rows are compared in the background', async () => {
    const { agent_id, session_id } = await session();
    await forger.run('UPDATE {sessions} SET agent_id = ?', 'agent_of_somebody_else');
    await forger.run(`UPDATE {turns} SET input = output WHERE session_id = ?`, session_id);
    await eventually(damagedRows, (rows) => rows.length === 2);
    expect(
      (await damagedRows()).map(({ table, column }) => `${table} ${column}`).toSorted(),
    ).toEqual(['sessions agent_id', 'turns input']);
    await forger.run('UPDATE {sessions} SET agent_id = ?', agent_id);
    await eventually(damagedRows, (rows) => rows.length === 1);
  }, 60_000);

  test('a plain address of a webhook is not used, and a hold that was taken away in its row still holds', async () => {
    const { session_id } = await session();
    const { body } = await service.post('/v1/webhooks', { url: 'https://[3ffe::1]/hook' });
    await forger.run(`UPDATE {webhooks} SET url = 'https://attacker.example/'`);
    const shown = await service.get(`/v1/webhooks/${body.data.webhook_id}`);
    expect([shown.status, shown.body.code]).toEqual([503, 'read_model_damaged']);
    const [{ account_id } = {}] = await forger.run('SELECT account_id FROM {accounts}');
    await cli('accounts', 'hold', account_id as string, 'on', '--reason', 'A case.');
    await forger.run(`UPDATE {accounts} SET hold = '{"held":false}', limits = '{}'`);
    const erased = await runCliWith(
      service.env,
      'sessions',
      'erase',
      session_id,
      '--confirm',
      session_id,
    );
    expect([erased.code, erased.err]).toEqual([1, expect.stringContaining('legal hold')]);
  }, 60_000);

  test('a row that names another account gives that account nothing', async () => {
    const { agent_id, session_id } = await session();
    const { body } = await service.post('/v1/webhooks', { url: 'https://[3ffe::1]/hook' });
    const { webhook_id } = body.data;
    const replay = await service.post('/v1/replays', { sessions: [session_id], tools: 'recorded' });
    const { replay_id } = replay.body.data;
    const { answer: account } = await cli('accounts', 'open', 'attacker');
    const { account_id } = account;
    const { answer: issued } = await cli('keys', 'issue', '--account', account_id as string);
    const attacker = apiClient(service.url, issued['api_key'] as string);
    await untilServed(attacker);
    const places = { sessions: session_id, webhooks: webhook_id, replays: replay_id };
    for (const table of Object.keys(places))
      await forger.run(`UPDATE {${table}} SET account_id = ?`, account_id as string);
    const mine = `/v1/sessions/${session_id}`;
    const paths = ['', '/events', '/report', '/proof', '/turns/1/requests'].map((p) => mine + p);
    for (const path of [...paths, `/v1/webhooks/${webhook_id}`, `/v1/replays/${replay_id}`]) {
      const reply = await attacker.get(path);
      expect([path, [404, 503].includes(reply.status)]).toEqual([path, true]);
      expect(JSON.stringify(reply.body)).not.toMatch(/Hello|3ffe/);
    }
    const patched = await attacker.send('PATCH', mine, { title: FORGED });
    expect([patched.status, patched.body.code]).toEqual([404, 'session_not_found']);
    expect(await damagedRows()).toContainEqual({
      table: 'sessions',
      key: session_id,
      column: 'account_id',
    });
    const run = { input: 'More.', session_id };
    expect((await service.post(`/v1/agents/${agent_id}/run`, run)).status).toBe(200);
    // The erasure of that account erases nothing of the other one, which may be held.
    await cli('accounts', 'erase', account_id as string, '--confirm', account_id as string);
    const types = service.forger.events().map(({ type }) => type);
    expect(types.filter((type) => type.includes('erased'))).toEqual(['account.erased.v1']);
  }, 60_000);

  test('rows that were deleted or made are named by the verification', async () => {
    const { session_id } = await session();
    await forger.run('DELETE FROM {turns} WHERE session_id = ?', session_id);
    await forger.run(
      `INSERT INTO {parked_streams} VALUES ('session-x', 1, 'session.turn_started.v1', 'x')`,
    );
    expect(await verify()).toMatchObject({
      code: 1,
      answer: {
        differing: 2,
        first: [
          { table: 'turns', key: `${session_id}/1`, column: 'missing' },
          { table: 'parked_streams', column: 'unrecorded' },
        ],
      },
    });
    await forger.run(`UPDATE {checkpoint} SET event_position = event_position || '9'`);
    expect((await verify()).answer['first']).toContainEqual(
      expect.objectContaining({ table: 'checkpoint' }),
    );
  }, 60_000);

  /** The sessions that a search for words finds. */
  async function sessionsWith(words: string): Promise<string[]> {
    const { body } = await service.get(`/v1/sessions?q=${words}`);
    return (body.data as { session_id: string }[]).map(({ session_id }) => session_id);
  }

  test('words that a search finds or does not find a session by are compared with the log', async () => {
    const { session_id: hidden } = await session();
    const { session_id: shown, agent_id } = await session();
    const sessions = [hidden, shown];
    const more = { input: 'Another zebra.', session_id: shown };
    expect((await service.post(`/v1/agents/${agent_id}/run`, more)).status).toBe(200);
    expect(await sessionsWith('zebra')).toEqual([shown]);
    expect((await sessionsWith('hi')).toSorted()).toEqual(sessions.toSorted());
    expect(await verify()).toMatchObject({ code: 0, answer: { differing: 0 } });
    const places = [
      { table: 'turn_words', key: `${hidden}/1`, column: 'words' },
      { table: 'turn_words', key: `${shown}/1`, column: 'missing' },
    ];
    await forger.run(
      'UPDATE {turn_words} SET words = (SELECT words FROM {turn_words} WHERE session_id = ? AND turn = 2) WHERE session_id = ?',
      shown,
      hidden,
    );
    await forger.run('DELETE FROM {turn_words} WHERE session_id = ? AND turn = 1', shown);
    expect(await verify()).toMatchObject({ code: 1, answer: { complete: true } });
    expect((await verify()).answer['first']).toEqual(expect.arrayContaining(places));
    await eventually(damagedRows, (rows) => rows.length === 2);
    expect(await damagedRows()).toEqual(expect.arrayContaining(places));
    expect((await cli('projections', 'rebuild')).code).toBe(0);
    await eventually(
      () => sessionsWith('hi'),
      (ids) => ids.length === 2,
    );
    expect(await verify()).toMatchObject({ code: 0, answer: { differing: 0 } });
  }, 90_000);
});

test('entries of the index that SQLite keeps of words are compared with them', async () => {
  const service = await kinds.find(({ name }) => name === 'SQLite')!.start();
  await using resources = new AsyncDisposableStack();
  resources.defer(() => service.close());
  const forger = rowForger(service.env);
  const agent = await service.createAgent();
  const { body } = await service.post(`/v1/agents/${agent}/run`, { input: 'A zebra.' });
  const { session_id } = body.data;
  await service.get('/v1/sessions?q=zebra');
  const verify = async () => {
    const { code, out } = await runCliWith(service.env, '--json', 'projections', 'verify');
    return { code, first: (JSON.parse(out) as { first: object[] }).first };
  };
  expect(await verify()).toEqual({ code: 0, first: [] });
  const rows = 'SELECT rowid + 1, words FROM turn_words';
  await forger.run(`INSERT INTO word_index (rowid, words) ${rows}`);
  const foreign = { table: 'word_index', key: '*', column: 'unrecorded' };
  expect(await verify()).toEqual({ code: 1, first: [foreign] });
  await forger.run('DELETE FROM word_index');
  const hidden = { table: 'word_index', key: `${session_id}/1`, column: 'words' };
  expect(await verify()).toEqual({ code: 1, first: [hidden] });
  await forger.run(`UPDATE turn_words SET rowid = rowid << 2`);
  expect(await verify()).toEqual({ code: 1, first: [{ ...hidden, column: 'rowid' }] });
}, 60_000);
