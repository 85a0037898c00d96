import { randomBytes } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { currentGeneration, generationFile } from '../../../infra/sqlite/readModels/generations.ts';
import { doAllSteps, extractPrefixes, extractWords } from '../../../shared/search/words.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { filesHolding } from '../../support/stores/erasure/holding.ts';
import { everyPage } from '../../support/http/everyPage.ts';
import { exported, linesOf } from '../../support/http/exported.ts';
import { expectFailure } from '../../support/http/failures.ts';
import {
  startTestService,
  type Client,
  type Reply,
  type TestService,
} from '../../support/http/service.ts';
import { clientWith, eventually, newKey } from '../../support/processes/operator.ts';

let service: TestService;
let agent: string;
let marker: string;
beforeAll(async () => {
  service = await startTestService(({ messages }) => {
    const text = String(messages.at(-1)!.content);
    if (text.startsWith('fail')) return { status: 400, body: { error: { message: 'no' } } };
    return { text: `Said: ${text.toUpperCase()} Grüße` };
  });
  agent = await service.createAgent();
});
afterAll(() => service.close());
beforeEach(() => {
  // One word without parts: digits and capitals would end some.
  marker = Array.from(randomBytes(16), (byte) => String.fromCodePoint(97 + (byte % 26))).join('');
});

async function talk(...inputs: string[]): Promise<string> {
  let session_id: string | undefined;
  for (const input of inputs)
    session_id =
      (await service.post(`/v1/agents/${agent}/run`, { input, ...(session_id && { session_id }) }))
        .body.data?.session_id ?? session_id;
  return session_id!;
}
const search = (q: string, query = '', client: Client = service): Promise<Reply> =>
  client.get(`/v1/sessions?q=${encodeURIComponent(q)}${query}`);
const found = async (q: string, query = '', client: Client = service): Promise<unknown[]> =>
  ((await search(q, query, client)).body.data as { session_id: string; matches: number[] }[]).map(
    ({ session_id, matches }) => [session_id, ...matches],
  );

/** The tokens that the files of the read models hold of turns. */
function tokensWhere(condition: 'session_id = ?' | 'session_id <> ?', session: string): string[] {
  const file = generationFile(service.folder, currentGeneration(service.folder)!);
  const database = new DatabaseSync(file, { readOnly: true });
  try {
    const rows = database.prepare(`SELECT words FROM turn_words WHERE ${condition}`).all(session);
    return rows.flatMap(({ words }) => String(words).split(' '));
  } finally {
    database.close();
  }
}

describe('searching sessions', () => {
  test('finds what was said in a turn, by any of its words, as soon as it was answered', async () => {
    const one = await talk(`the first ${marker}`, 'between', `Crème brûlée for ${marker}?`);
    const two = await talk(`another, ${marker}!`);
    expect(await found(marker)).toEqual([
      [two, 1],
      [one, 1, 3],
    ]);
    expect(await found(`${marker} creme`)).toEqual([[one, 3]]);
    expect(await found(`BRULEE ${marker.toUpperCase()} said grusse`)).toEqual([]);
    expect(await found(`BRULEE ${marker.toUpperCase()} said gruße`)).toEqual([[one, 3]]);
    // Of two turns, each has one of the words.
    expect(await found(`between ${marker}`)).toEqual([]);
    expect(await found(marker.slice(0, -1))).toEqual([]);
  });

  test('finds what is written without spaces, and turns that failed', async () => {
    const japanese = await talk(`${marker} 東京タワーは高いです`);
    const failed = await talk(`hello ${marker}`, `fail now ${marker}`);
    expect(await found(`${marker} タワー`)).toEqual([[japanese, 1]]);
    expect(await found(`${marker} 高`)).toEqual([[japanese, 1]]);
    expect(await found(`${marker} 東高`)).toEqual([]);
    expect(await found(`${marker} now`)).toEqual([[failed, 2]]);
  });

  test('finds words next to symbols, and parts of compounds', async () => {
    const session = await talk(`Turnlog™ №4711 ①Install ½cup getUserName ${marker}`);
    for (const word of ['turnlog', '4711', 'install', 'cup', 'user', 'getUserName', '½'])
      expect([word, await found(`${word} ${marker}`)]).toEqual([word, [[session, 1]]]);
    expect(await found(`usern ${marker}`)).toEqual([]);
  });

  test('finds words by their beginnings, alone and with filters and other words', async () => {
    const session = await talk(`An invoice for ${marker}`, `Inventories of ${marker}`);
    const prefix = `${marker.slice(0, 7)}*`;
    for (const filter of ['', `&agent_id=${agent}`, '&order=oldest', '&created_from=2020-01-01'])
      expect(await found(`inv* ${marker}`, filter)).toEqual([[session, 1, 2]]);
    expect(await found(`Invo* ${prefix}`)).toEqual([[session, 1]]);
    expect(await found(`inventories* ${marker}`)).toEqual([[session, 2]]);
    expect(await found(`invx* ${marker}`)).toEqual([]);
    expect(await found(`inv ${marker}`)).toEqual([]);
    const stranger = await clientWith(service.url, await newKey(service.folder));
    expect(await found(prefix, '', stranger)).toEqual([]);
  });

  test('goes together with the filters and pages of the list', async () => {
    const sessions = [];
    for (let n = 0; n < 3; n += 1) sessions.push(await talk(`${marker} ${n}`));
    await service.send('PATCH', `/v1/sessions/${sessions[1]}`, { labels: { which: 'second' } });
    expect(await found(marker, '&label=which:second')).toEqual([[sessions[1], 1]]);
    expect(await found(marker, '&created_to=2020-01-01T00:00:00Z')).toEqual([]);
    expect((await found(marker, '&order=oldest')).map((row) => (row as string[])[0])).toEqual(
      sessions,
    );
    const first = await search(marker, '&limit=2');
    const next = /<([^>]+)>; rel="next"/.exec(first.headers.get('link')!)![1]!;
    expect(first.body.data).toHaveLength(2);
    expect((await service.get(next)).body.data).toMatchObject([{ session_id: sessions[0] }]);
    const listed = (await service.get('/v1/sessions?limit=1')).body.data as object[];
    expect(listed[0]).not.toHaveProperty('matches');
  });

  test('refuses what has no word, too many, or is too long, and names it', async () => {
    const { queryWords, queryCharacters } = LIMITS.search;
    const words = (count: number): string =>
      Array.from({ length: count }, (_, n) => `w${n}`).join(' ');
    for (const [q, said] of [
      ['', 'must not be empty'],
      ['?! …', 'must have a letter or a digit'],
      ['x'.repeat(queryCharacters + 1), `${queryCharacters}`],
      [words(queryWords + 1), `must not have more than ${queryWords} words`],
      ['invoice in*', 'must have at least 3 characters before "*"'],
    ] as const) {
      const reply = await search(q);
      expectFailure(reply, 'invalid_request');
      expect(reply.body.details).toMatchObject({
        q: { message: expect.stringContaining(said), path: 'query/q' },
      });
    }
    expect((await search(words(queryWords))).status).toBe(200);
    expect((await search('x'.repeat(queryCharacters))).status).toBe(200);
  });

  test('never finds another account’s, which has other tokens for the same words', async () => {
    const own = await talk(marker);
    expect(await found(marker)).toEqual([[own, 1]]);
    const stranger = await clientWith(service.url, await newKey(service.folder));
    expect(await found(marker, '', stranger)).toEqual([]);
    const theirs = (
      await stranger.post('/v1/agents', { name: 'a', instruction: 'b', model: 'scripted' })
    ).body.data.agent_id as string;
    const reply = await stranger.post(`/v1/agents/${theirs}/run`, { input: marker });
    const session = reply.body.data.session_id as string;
    expect(await found(marker, '', stranger)).toEqual([[session, 1]]);
    expect(await found(marker)).toEqual([[own, 1]]);
    const ours = tokensWhere('session_id = ?', own);
    const others = new Set(tokensWhere('session_id = ?', session));
    const words = doAllSteps(extractWords([marker, `Said: ${marker.toUpperCase()} Grüße`]));
    expect(ours).toHaveLength(words.size + extractPrefixes(words).size);
    expect(ours.filter((token) => others.has(token))).toEqual([]);
  });

  test('keeps no word in any file, and of an erased session no token either, also after a restart', async () => {
    const session = await talk(marker, `once more ${marker}`);
    const other = await talk(`other ${marker.slice(0, 5)}`);
    expect(await found(marker)).toEqual([[session, 1, 2]]);
    expect(filesHolding(service.folder, marker)).toEqual([]);
    const prefix = `${marker.slice(0, 7)}*`;
    expect(await found(prefix)).toEqual([[session, 1, 2]]);
    const kept = new Set(tokensWhere('session_id <> ?', session));
    const tokens = tokensWhere('session_id = ?', session).filter((token) => !kept.has(token));
    expect(tokens.length).toBeGreaterThan(2);
    for (const token of tokens) expect(filesHolding(service.folder, token)).not.toEqual([]);
    await service.send('DELETE', `/v1/sessions/${session}`, '');
    expect(await found(marker)).toEqual([]);
    expect(await found(prefix)).toEqual([]);
    await eventually(
      () => service.get('/health/ready'),
      ({ body }) => body.data.projection.erases_words === undefined,
    );
    // The write-ahead file is cleared after that.
    const held = await eventually(
      async () => tokens.flatMap((token) => filesHolding(service.folder, token)),
      (files) => files.length === 0,
    );
    expect(held).toEqual([]);
    await service.restart();
    expect(await found(marker)).toEqual([]);
    expect(await found(marker.slice(0, 5))).toEqual([[other, 1]]);
    for (const token of tokens) expect(filesHolding(service.folder, token)).toEqual([]);
  });

  test('says which sessions an export takes, page after page, and which a replay does', async () => {
    const taken = [];
    for (let n = 0; n < 3; n += 1) taken.push(await talk(`take ${marker} ${n}`));
    await talk(`leave ${marker}`);
    const issued = await newKey(service.folder);
    await clientWith(service.url, issued);
    const stranger = { url: service.url, key: issued.api_key };
    const q = encodeURIComponent(`take ${marker}`);
    const idsIn = (text: string): Set<string> =>
      new Set(linesOf(text).map(({ stream }) => String(stream).replace('session-', '')));
    const path = `/v1/export?format=events&order=oldest&q=${q}`;
    expect([...idsIn((await exported(service, path)).text)]).toEqual(taken);
    expect((await exported(stranger, path)).text).toBe('');
    const page = await exported(service, `${path}&limit=2`);
    const rest = await exported(service, page.next!);
    expect([page, rest].map(({ text }) => [...idsIn(text)])).toEqual([
      taken.slice(0, 2),
      taken.slice(2),
    ]);
    expect(rest.next).toBeUndefined();
    expectFailure(await service.get('/v1/export?format=events&q=%3F'), 'invalid_request');
    const replay = { tools: 'recorded', budget: { tokens: 1_000_000 } };
    const filter = { q: `take ${marker}` };
    const { replay_id } = (await service.post('/v1/replays', { ...replay, filter })).body.data;
    const made = await eventually(
      async () => (await service.get(`/v1/replays/${replay_id}/sessions`)).body.data as any[],
      (sessions) => sessions.every(({ status }) => status === 'completed'),
    );
    expect(new Set(made.map(({ session_id }) => session_id))).toEqual(new Set(taken));
    const none = { ...replay, filter: { q: `${marker} nothing` } };
    expectFailure(await service.post('/v1/replays', none), 'session_not_found');

    // What the replay made has the words as well, and is found where it is asked for alone.
    const copies = made.map(({ replay_session_id }) => replay_session_id as string).toSorted();
    expect(await found(`take ${marker}`, '&order=oldest')).toEqual(taken.map((id) => [id, 1]));
    const paged: string[] = [];
    const asked = `/v1/sessions?q=${q}&replay_id=${replay_id}&order=oldest&limit=2`;
    for await (const { session_id } of everyPage<{ session_id: string }>(service, asked))
      paged.push(session_id);
    expect(paged).toEqual(copies);
    expect([...idsIn((await exported(service, path)).text)]).toEqual(taken);
  });
});
