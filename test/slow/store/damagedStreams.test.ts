import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { issueKey, openAccount } from '../../../shared/accounts/commands.ts';
import { SCOPES } from '../../../shared/accounts/events.ts';
import { appendEvents, NO_STREAM } from '../../../shared/eventlog/append.ts';
import { accountStream, sessionStream } from '../../../shared/eventlog/streams.ts';
import {
  converse,
  expectDamaged,
  expectWhole,
  run,
  type TestSession,
  type Found,
} from '../../support/http/damagedSession.ts';
import { expectFailure } from '../../support/http/failures.ts';
import { asOperator, clientWith, eventually, newKey } from '../../support/processes/operator.ts';
import { sessionStarted, turnStarted } from '../../support/builders/events.ts';
import { startTestService, type TestService } from '../../support/http/service.ts';
import { AUTHORSHIP } from '../../support/builders/authorship.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.close());

function inLog<Result>(work: (database: DatabaseSync) => Result): Result {
  const database = new DatabaseSync(join(service.folder, 'events.db'), { timeout: 5_000 });
  try {
    return work(database);
  } finally {
    database.close();
  }
}

type Row = Record<string, string | number>;
const COLUMNS = ['position', 'stream', 'revision', 'id', 'type', 'data', 'metadata'] as const;

/** Takes events out of a stream. Returns what puts them back. */
const removeEvents = (stream: string, where: string): (() => void) =>
  inLog((database) => {
    const rows = database
      .prepare(`SELECT * FROM events WHERE stream = ? AND ${where}`)
      .all(stream) as Row[];
    database.prepare(`DELETE FROM events WHERE stream = ? AND ${where}`).run(stream);
    return () =>
      inLog((again) => {
        const insert = again.prepare('INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)');
        for (const row of rows) insert.run(...COLUMNS.map((column) => row[column]!));
      });
  });

const changeEvent = (
  stream: string,
  revision: number,
  changes: { type?: string; data?: string; metadata?: string },
): (() => void) =>
  inLog((database) => {
    const before = database
      .prepare('SELECT type, data, metadata FROM events WHERE stream = ? AND revision = ?')
      .get(stream, revision) as Record<string, string>;
    const set = (values: Record<string, string>) =>
      inLog((again) =>
        again
          .prepare(
            'UPDATE events SET type = ?, data = ?, metadata = ? WHERE stream = ? AND revision = ?',
          )
          .run(values['type']!, values['data']!, values['metadata']!, stream, revision),
      );
    set({ ...before, ...changes });
    return () => void set(before);
  });

const addEvent = (
  stream: string,
  revision: number,
  event: { type: string; data: string; metadata: string },
): (() => void) => {
  const id = randomUUID();
  inLog((database) => {
    const { type, data, metadata } = event;
    database
      .prepare(
        'INSERT INTO events (stream, revision, id, type, data, metadata) VALUES (?, ?, ?, ?, ?, ?)',
      )
      .run(stream, revision, id, type, data, metadata);
  });
  return () =>
    void inLog((database) => database.prepare('DELETE FROM events WHERE id = ?').run(id));
};

type Damage = [what: string, damage: (stream: string) => () => void, found: Found];

/** Of a session of three turns, revisions 0 to 6. */
const DAMAGES: readonly Damage[] = [
  [
    'without its beginning',
    (stream) => removeEvents(stream, 'revision < 5'),
    { first_revision: 5, last_revision: 6 },
  ],
  [
    'without its first event',
    (stream) => removeEvents(stream, 'revision = 0'),
    { first_revision: 1, last_revision: 6 },
  ],
  [
    'with a hole',
    (stream) => removeEvents(stream, 'revision = 3'),
    { first_revision: 0, last_revision: 6 },
  ],
  [
    'with a hole before its last event',
    (stream) => removeEvents(stream, 'revision = 5'),
    { first_revision: 0, last_revision: 6 },
  ],
  [
    'of which nothing is left',
    (stream) => removeEvents(stream, 'true'),
    { first_revision: null, last_revision: null },
  ],
  [
    'with an event of another kind at its end',
    (stream) => addEvent(stream, 7, { type: 'order.paid', data: '{}', metadata: '{}' }),
    { first_revision: 0, last_revision: 7 },
  ],
  [
    'with an event of another kind within',
    (stream) => changeEvent(stream, 2, { type: 'order.paid' }),
    { first_revision: 0, last_revision: 6 },
  ],
];

/** What shows only to who decodes the events again. */
const CHANGES: readonly [what: string, change: Parameters<typeof changeEvent>[2]][] = [
  ['an event that is no JSON', { data: '{' }],
  ['data that does not fit its schema', { data: '{"turn":"one"}' }],
];
/** What a run notices that reads only the newest events: the chain leads through it. */
const BROKEN_CHAIN = ['metadata that does not fit its schema', { metadata: '{}' }] as const;

/**
 * A session that is not the last in the log: SQLite gives the positions of the last events again
 * when they are deleted. Its events have leaves, which they would not get while they are gone.
 */
async function earlier(turns: number): Promise<TestSession> {
  const made = await converse(service, turns);
  const later = await converse(service, 1, made.agent);
  // What follows the log has passed it: the event that a checkpoint names may not disappear.
  for (const path of [later.session, `${later.session}/proof`])
    await eventually(
      () => service.get(`/v1/sessions/${path}`),
      ({ status }) => status === 200,
    );
  return made;
}

describe.each(DAMAGES)('a session %s', (_what, damage, found) => {
  test.each([
    ['that is read anew', () => service.restart()],
    ['that the process remembers', () => Promise.resolve()],
  ] as const)(
    '%s is said to be damaged, everything else goes on, and it is well once it is whole again',
    async (_how, prepare) => {
      const made = await earlier(3);
      const mend = damage(made.stream);
      await prepare();
      await expectDamaged(service, made, found);
      mend();
      await expectWhole(service, made);
    },
  );
});

describe.each(CHANGES)('a session with %s', (_what, change) => {
  test('that the process remembers is said to be damaged, once its events were read', async () => {
    const made = await earlier(3);
    const mend = changeEvent(made.stream, 2, change);
    expect((await run(service, made.agent, 'unnoticed', made.session)).status).toBe(200);
    expectFailure(await service.get(`/v1/sessions/${made.session}/events`), 'stream_damaged');
    await expectDamaged(service, made, { first_revision: 0, last_revision: 8 });
    mend();
    await expectWhole(service, made);
  });
});

describe.each([...CHANGES, BROKEN_CHAIN])('a session with %s', (_what, change) => {
  test.each([
    ['that is read anew', () => service.restart()],
    ...(change === BROKEN_CHAIN[1]
      ? ([['that the process remembers', () => Promise.resolve()]] as const)
      : []),
  ] as const)('%s is said to be damaged', async (_how, prepare) => {
    const made = await earlier(3);
    const mend = changeEvent(made.stream, 2, change);
    await prepare();
    await expectDamaged(service, made, { first_revision: 0, last_revision: 6 });
    mend();
    await expectWhole(service, made);
  });
});

test('a long session that has lost its beginning is noticed by who reads its events, and then by its runs', async () => {
  const made = await earlier(20);
  const mend = removeEvents(made.stream, 'revision < 10');
  expectFailure(await service.get(`/v1/sessions/${made.session}/events`), 'stream_damaged');
  await expectDamaged(service, made, { first_revision: 10, last_revision: 40 });
  mend();
  await expectWhole(service, made);
});

test('a later page of the events tells of a missing beginning, and of an end that was cut off', async () => {
  const { session, stream } = await earlier(3);
  const page = (after: number) =>
    service.get(`/v1/sessions/${session}/events?after=${after}&limit=2`);
  const mend = removeEvents(stream, 'revision = 0');
  expectFailure(await page(3), 'stream_damaged');
  mend();
  const mendEnd = removeEvents(stream, 'revision = 6');
  expect((await page(1)).body.data).toHaveLength(2);
  expect(expectFailure(await page(4), 'stream_damaged').error).toContain('revision 6 is missing');
  mendEnd();
  expect((await page(4)).body.data).toHaveLength(2);
  expect((await page(6)).body.data).toEqual([]);
});

test('a damaged session of somebody else or of another agent does not exist, like one nobody ever had', async () => {
  const { session, stream, agent } = await earlier(2);
  const mend = removeEvents(stream, 'revision = 1');
  await service.restart();
  const stranger = await clientWith(service.url, await newKey(service.folder));
  const body = { name: 'Other', instruction: 'x', model: 'scripted' };
  const strangersAgent = (await stranger.post('/v1/agents', body)).body.data.agent_id as string;
  expectFailure(
    await stranger.post(`/v1/agents/${strangersAgent}/run`, { input: 'x', session_id: session }),
    'session_not_found',
  );
  expectFailure(await stranger.get(`/v1/sessions/${session}/events`), 'session_not_found');
  expectFailure(await run(service, await service.createAgent(), 'x', session), 'session_not_found');
  expectFailure(await run(service, agent, 'x', `${session.slice(0, -4)}zzzz`), 'session_not_found');
  mend();
});

test('a damaged session with an open turn keeps neither the start nor the open turns of others back', async () => {
  const owner = (await readFile(join(service.folder, 'instance-id'), 'utf8')).trim();
  const { account_id } = await newKey(service.folder);
  const names = ['gone', 'cut', 'well'].map((name) => `session_${name}`);
  await asOperator(service.folder, async ({ store }) => {
    const started = turnStarted(1, { owner });
    const authorship = { ...AUTHORSHIP, account_id, recorded_at: new Date().toISOString() };
    for (const name of names)
      await appendEvents(
        store,
        { stream: sessionStream(name), head: NO_STREAM },
        {
          events: [sessionStarted(), started].map((event) => ({ id: randomUUID(), ...event })),
          authorship,
        },
      );
  });
  const openTurns = () =>
    asOperator(service.folder, async ({ readModels }) => (await readModels()).listOpenTurns());
  await eventually(openTurns, (open) => open.length === 3);
  await earlier(1);
  const mends = [
    removeEvents('session-session_gone', 'true'),
    removeEvents('session-session_cut', 'revision = 0'),
  ];
  await service.restart();
  const left = await eventually(openTurns, (open) => open.length < 3);
  expect(left.map(({ session_id }) => session_id).toSorted()).toEqual([
    'session_cut',
    'session_gone',
  ]);
  const damaged = (await service.get('/health/ready')).body.data.damaged_streams as {
    stream: string;
  }[];
  expect(damaged.toSorted((a, b) => a.stream.localeCompare(b.stream))).toEqual([
    { stream: 'session-session_cut', first_revision: 1, last_revision: 1 },
    { stream: 'session-session_gone', first_revision: null, last_revision: null },
  ]);
  for (const mend of mends) mend();
  await service.restart();
  await eventually(openTurns, (open) => open.length === 0);
});

test('a key can be neither issued nor revoked in an account whose stream is damaged', async () => {
  await asOperator(service.folder, async (operator) => {
    const actor = {
      account_id: operator.ids.typeId('acct'),
      key_id: 'operator',
      request_id: 'test',
    };
    const stream = accountStream(actor.account_id);
    const grant = { name: 'k', scopes: SCOPES, expiresAt: null };
    await openAccount(operator, actor, 'damaged');
    for (let key = 0; key < 3; key += 1) await issueKey(operator, actor, grant);
    await converse(service, 1);
    const mend = removeEvents(stream, 'revision = 2');
    const message = `The stream ${stream} is damaged: revision 2 is missing; revisions 0 to 3 were found.`;
    await expect(issueKey(operator, actor, grant)).rejects.toMatchObject({
      code: 'stream_damaged',
      message,
    });
    mend();
    await issueKey(operator, actor, grant);
  });
});

test('a session is not taken for damaged while many runs of it go on at once', async () => {
  const made = await converse(service, 1);
  const replies = await Promise.all(
    Array.from({ length: 12 }, () => run(service, made.agent, 'known', made.session)),
  );
  expect(replies.map(({ status }) => status)).toEqual(Array.from({ length: 12 }, () => 200));
  await expectWhole(service, made);
});

test('a session that a newer release has gone on with is none that is damaged: 503 says so, and the rest goes on', async () => {
  const { agent, session, stream } = await converse(service, 2);
  const events = (await service.get(`/v1/sessions/${session}/events`)).body.data;
  const { revision, metadata } = events.at(-1);
  const { prev_hash: _before, hash, ...authorship } = metadata;
  await asOperator(service.folder, ({ store, ids }) =>
    appendEvents(
      store,
      { stream, head: { revision, hash } },
      {
        events: [{ id: ids.uuid(), type: 'session.turn_rated.v1', data: { turn: 2, stars: 5 } }],
        authorship: { ...authorship, recorded_at: new Date().toISOString() },
      },
    ),
  );
  for (const answer of [
    await run(service, agent, 'once more', session),
    await service.get(`/v1/sessions/${session}/events`),
  ]) {
    expect(expectFailure(answer, 'release_too_old').error).toContain('session.turn_rated.v1');
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '1']);
  }
  expect((await service.get(`/v1/sessions/${session}`)).body.data.turns).toHaveLength(2);
  expect((await service.get('/health/ready')).body.data.damaged_streams ?? []).not.toContainEqual(
    expect.objectContaining({ stream }),
  );
  expect((await run(service, agent, 'elsewhere')).status).toBe(200);
});
