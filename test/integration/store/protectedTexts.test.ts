import { randomUUID } from 'node:crypto';
import { copyFile, readFile, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { appendEvents, NO_STREAM } from '../../../shared/eventlog/append.ts';
import type { RecordedEvent } from '../../../shared/eventlog/event.ts';
import { findChainFault } from '../../../shared/eventlog/hashChain.ts';
import { sessionStream } from '../../../shared/eventlog/streams.ts';
import { sessionStarted, turnCompleted, turnStarted } from '../../support/builders/events.ts';
import { startTestService, type TestService } from '../../support/http/service.ts';
import { runCli } from '../../support/processes/cliProcess.ts';
import { asOperator, eventually } from '../../support/processes/operator.ts';
import { misfitIn } from '../../support/stores/misfitIn.ts';

const MARKER = 'kept from the log';

let service: TestService;
let agent: string;
beforeAll(async () => {
  service = await startTestService();
  agent = await service.createAgent({ name: MARKER, instruction: MARKER, tool: 'calculator' });
});
afterAll(() => service.close());

async function run(input: string, session_id?: string): Promise<string> {
  const { status, body } = await service.post(`/v1/agents/${agent}/run`, {
    input,
    ...(session_id !== undefined && { session_id }),
  });
  expect(status).toBe(200);
  return body.data.session_id;
}

const eventsOf = async (session: string): Promise<RecordedEvent[]> =>
  (await service.get(`/v1/sessions/${session}/events`)).body.data;

const transcriptOf = async (session: string) =>
  (await service.get(`/v1/sessions/${session}`)).body.data;

function expectChained(events: readonly RecordedEvent[]): void {
  let previous: { revision: number; hash: string } | undefined;
  for (const event of events) {
    expect(findChainFault(event, previous)).toBeUndefined();
    previous = { revision: event.revision, hash: event.metadata.hash };
  }
}

test('texts stand in no file of the log or the key store, and outlast a restart', async () => {
  service.model.use([
    { text: MARKER, tool_calls: [{ name: 'calculator', arguments: '{"expression": "6*7"}' }] },
    { text: MARKER },
  ]);
  const session = await run(MARKER);
  const before = [await transcriptOf(session), await eventsOf(session)];
  expect(JSON.stringify(before[1])).toContain(MARKER);
  expectChained(before[1]);
  await service.restart();
  expect([await transcriptOf(session), await eventsOf(session)]).toEqual(before);
  await run('and on', session);
  const files = (await readdir(service.folder)).filter((name) => /^(events|keys)\.db/.test(name));
  for (const file of files)
    expect((await readFile(join(service.folder, file))).includes(MARKER)).toBe(false);
  expect(await misfitIn(service.folder)).toBeUndefined();
});

/** A session as a release recorded it that protected no texts. */
async function unprotectedSession(): Promise<string> {
  const { account_id } = (await eventsOf(await run('whose it is')))[0]!.metadata;
  return asOperator(service.folder, async ({ store, ids }) => {
    const session = ids.typeId('session');
    const events = [sessionStarted(agent), turnStarted(1), turnCompleted(1)];
    await appendEvents(
      store,
      { stream: sessionStream(session), head: NO_STREAM },
      {
        events: events.map((event) => ({ id: randomUUID(), ...event })),
        authorship: {
          account_id,
          key_id: 'key_1',
          request_id: 'r',
          causation_id: 'r',
          recorded_at: new Date().toISOString(),
        },
      },
    );
    return session;
  });
}

test('a session that was begun before texts were protected is read, and goes on with protected ones', async () => {
  const session = await unprotectedSession();
  await eventually(
    () => service.get(`/v1/sessions/${session}`),
    ({ status }) => status === 200,
  );
  service.model.use([{ text: MARKER }]);
  await run('second', session);
  expect((await transcriptOf(session)).turns.map(({ input }: any) => input)).toEqual([
    'question 1',
    'second',
  ]);
  expect(service.model.requests.at(-1)!.messages.map(({ content }: any) => content)).toContain(
    'answer 1',
  );
  const events = await eventsOf(session);
  expect(events.map(({ data }: any) => typeof (data.input ?? data.output))).toEqual([
    'undefined',
    'string',
    'string',
    'object',
    'object',
  ]);
  expectChained(events);
  expect(await misfitIn(service.folder)).toBeUndefined();
});

test('a key that was lost is said aloud wherever its texts are wanted, and others are read on', async () => {
  const [lost, other] = [await run('lost'), await run('other')];
  const keyId = await asOperator(service.folder, async ({ store }) => {
    const events = await store.readStream(sessionStream(lost), { direction: 'forwards', limit: 9 });
    return /"box":"([\w-]{16})\./.exec(events.map(({ data }) => data).join(''))![1]!;
  });
  await service.service().stop();
  const keys = new DatabaseSync(join(service.folder, 'keys.db'));
  expect(keys.prepare('DELETE FROM text_keys WHERE key_id = ?').run(keyId).changes).toBe(1);
  keys.close();
  await rm(join(service.folder, 'read-models'), { recursive: true });
  await service.restart();
  const transcript = await service.get(`/v1/sessions/${lost}`);
  expect(transcript).toMatchObject({ status: 503, body: { code: 'key_missing' } });
  expect(transcript.body.error).toContain(keyId);
  expect((await service.get('/health/ready')).body.data).toMatchObject({
    status: 'degraded',
    damaged_streams: [{ stream: sessionStream(lost) }],
  });
  expect((await service.get(`/v1/sessions/${lost}/events`)).body.code).toBe('key_missing');
  const again = { input: 'again', session_id: lost };
  expect(await service.post(`/v1/agents/${agent}/run`, again)).toMatchObject({
    status: 503,
    body: { code: 'key_missing' },
  });
  expect((await eventsOf(other)).length).toBe(3);
  expect((await service.get(`/v1/sessions/${other}`)).status).toBe(200);
  await run('on', other);
});

test('a key store that was restored from before an erasure is said aloud, until that is done again', async () => {
  const file = join(service.folder, 'keys.db');
  const session = await run('to be erased');
  await service.service().stop();
  await copyFile(file, `${service.folder}-keys.db`);
  await service.restart();
  await service.send('DELETE', `/v1/sessions/${session}`, '');
  const textKeys = async () => (await service.get('/health/ready')).body.data.text_keys;
  expect(await textKeys()).toBeUndefined();
  await service.service().stop();
  await copyFile(`${service.folder}-keys.db`, file);
  await service.restart();
  expect((await service.get('/health/ready')).body.data).toMatchObject({
    status: 'degraded',
    text_keys: { reason: expect.stringContaining(`session-${session}`) },
  });
  expect((await runCli(service.folder, 'text-keys', 'reconcile', '--apply')).code).toBe(0);
  await eventually(textKeys, (told) => told === undefined);
}, 60_000);
