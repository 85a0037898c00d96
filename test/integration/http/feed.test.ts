import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { jsonSchemas } from '../../support/contract/jsonSchemas.ts';
import { revokeKey } from '../../../shared/accounts/commands.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { feedEvents, openStream, type OpenStream } from '../../support/http/eventsClient.ts';
import { expectFailure } from '../../support/http/failures.ts';
import { scrape, valueOf } from '../../support/http/metrics.ts';
import { startTestService, type Reply, type TestService } from '../../support/http/service.ts';
import { asOperator, clientWith, eventually, newKey } from '../../support/processes/operator.ts';

let service: TestService;
let agent: string;
const open: OpenStream[] = [];

beforeAll(async () => {
  service = await startTestService();
  agent = await service.createAgent();
  await run('first');
});
afterAll(async () => {
  for (const stream of open) stream.cut();
  await service.close();
});

const run = (input: string, session_id?: string): Promise<Reply> =>
  service.post(`/v1/agents/${agent}/run`, { input, ...(session_id && { session_id }) });

async function follow(query = '', headers = {}, key = service.key): Promise<OpenStream> {
  const stream = await openStream(`${service.url}/v1/events${query}`, key, headers);
  open.push(stream);
  return stream;
}

interface Page {
  status: number;
  events: any[];
  next: string | undefined;
}
async function page(path: string, key = service.key): Promise<Page> {
  const response = await fetch(service.url + path, { headers: { 'x-api-key': key } });
  const text = await response.text();
  return {
    status: response.status,
    events:
      text === ''
        ? []
        : text
            .trimEnd()
            .split('\n')
            .map((line) => JSON.parse(line)),
    next: /<(.*)>; rel="next"/.exec(response.headers.get('link') ?? '')?.[1],
  };
}
const types = (events: readonly { type: string }[]): string[] => events.map(({ type }) => type);

const FIRST_RUN = [
  'turnlog.agent.created.v1',
  'turnlog.session.started.v1',
  'turnlog.session.turn_started.v1',
  'turnlog.session.turn_completed.v1',
];

describe('the events of an account as a stream', () => {
  test('are those from the start as CloudEvents that fit the contract, and then what comes', async () => {
    const stream = await follow();
    expect([stream.status, stream.headers.get('content-type')]).toEqual([
      200,
      'text/event-stream; charset=utf-8',
    ]);
    await stream.until((events) => feedEvents(events).length === 4);
    expect(types(feedEvents(stream.events))).toEqual(FIRST_RUN);
    await run('second');
    await stream.until((events) => feedEvents(events).length === 7);
    const seen = feedEvents(stream.events);
    expect(seen[5].data).toMatchObject({ input: 'second' });
    const ajv = new Ajv2020({ strict: true, allErrors: true });
    const schemas = jsonSchemas();
    for (const [index, { type, data, cursor, ...attributes }] of seen.entries()) {
      expect(ajv.validate(schemas[type]!, data)).toBe(true);
      expect(attributes).toMatchObject({ specversion: '1.0', source: '/turnlog' });
      const own = stream.events.filter(({ event }) => event !== 'position')[index]!;
      expect([own.id, own.event]).toEqual([cursor, type]);
    }
    expect(new Set(seen.map(({ id }) => id)).size).toBe(7);
  });

  test('begin behind Last-Event-ID, whatever else the address says', async () => {
    const all = await page('/v1/events?format=jsonl');
    const behind = { 'last-event-id': all.events[1].cursor as string };
    const stream = await follow('?from=start', behind);
    await stream.until((events) => feedEvents(events).length === all.events.length - 2);
    expect(feedEvents(stream.events)).toEqual(all.events.slice(2));
  });

  test('begin with what comes where that is asked for, and tell at once where that is', async () => {
    const stream = await follow('?from=now');
    await stream.until((events) => events.length > 0);
    expect(stream.events[0]).toMatchObject({ event: 'position' });
    const position = stream.events[0]!.id!;
    await run('later');
    await stream.until((events) => feedEvents(events).length === 3);
    expect(feedEvents(stream.events)[1].data.input).toBe('later');
    const again = await follow('', { 'last-event-id': position });
    await again.until((events) => feedEvents(events).length === 3);
    expect(feedEvents(again.events)).toEqual(feedEvents(stream.events));
  });

  test('are only of the types that are asked for', async () => {
    const wanted = 'turnlog.session.started.v1,turnlog.agent.created.v1';
    const { events } = await page(`/v1/events?format=jsonl&types=${wanted}`);
    expect(types(events).slice(0, 2)).toEqual(FIRST_RUN.slice(0, 2));
    expect(new Set(types(events))).toEqual(new Set(wanted.split(',')));
    expectFailure(await service.get('/v1/events?types=session.started.v1'), 'invalid_request');
  });

  test('have empty texts once they were erased, and end with the erasure', async () => {
    const { session_id } = (await run('a secret')).body.data;
    await service.send('DELETE', `/v1/sessions/${session_id}`, '');
    const own = (await page('/v1/events?format=jsonl&limit=1000')).events.filter(
      ({ subject }) => subject === session_id,
    );
    expect(JSON.stringify(own)).not.toContain('a secret');
    expect(own[1].data).toMatchObject({ input: '', erased: true });
    expect(own.at(-1)).toMatchObject({ type: 'turnlog.session.erased.v1' });
  });
});

describe('pages of the events of an account', () => {
  test('lead on to each other without a gap, and on from the last one', async () => {
    const whole = await page('/v1/events?format=jsonl&limit=1000');
    const seen: unknown[] = [];
    let at: string = '/v1/events?format=jsonl&limit=2';
    for (let one = await page(at); one.events.length > 0; one = await page(at)) {
      expect(one.events.length).toBeLessThanOrEqual(2);
      seen.push(...one.events);
      at = one.next!;
    }
    expect(seen).toEqual(whole.events);
    await run('one more');
    expect(types((await page(at)).events)).toEqual(FIRST_RUN.slice(1, 3));
  });

  test('wait for their first event as long as they are told to', async () => {
    const { next } = await page('/v1/events?format=jsonl&from=now');
    const began = performance.now();
    expect((await page(`${next}&wait=1`)).events).toEqual([]);
    expect(performance.now() - began).toBeGreaterThanOrEqual(990);
    const waiting = page(`${next}&wait=60`);
    await run('awaited');
    expect(types((await waiting).events)).toContain('turnlog.session.started.v1');
  });
});

test('names every event message where that is asked for, so that one listener gets all', async () => {
  const stream = await follow('?event=message');
  await stream.until((seen) => seen.length >= FIRST_RUN.length);
  const events = stream.events.slice(0, FIRST_RUN.length);
  expect(events.map(({ event }) => event)).toEqual(FIRST_RUN.map(() => 'message'));
  expect(types(events.map(({ data }) => JSON.parse(data) as { type: string }))).toEqual(FIRST_RUN);
  expectFailure(await service.get('/v1/events?event=x'), 'invalid_request');
});

describe('whoever follows', () => {
  test('gets nothing of another account, by no cursor and no type', async () => {
    const stranger = await newKey(service.folder);
    const client = await clientWith(service.url, stranger);
    const { events } = await page('/v1/events?format=jsonl');
    const stream = await follow(`?after=${events[0].cursor}`, {}, stranger.api_key);
    await client.post('/v1/agents', { name: 'Mine', instruction: 'x', model: 'scripted' });
    await run('not for strangers');
    await stream.until((seen) => feedEvents(seen).length > 0);
    await client.post('/v1/agents', { name: 'Mine too', instruction: 'x', model: 'scripted' });
    await stream.until((seen) => feedEvents(seen).length === 2);
    expect(feedEvents(stream.events).map(({ data }) => data.name)).toEqual(['Mine', 'Mine too']);
    const theirs = await page('/v1/events?format=jsonl&limit=1000', stranger.api_key);
    expect(types(theirs.events)).toEqual(Array(2).fill('turnlog.agent.created.v1'));
    expect(JSON.stringify([stream.events, theirs])).not.toContain(agent);
  });

  test('is told in so many words what is no cursor, and what is one of another log', async () => {
    expectFailure(await service.get('/v1/events?after=0'), 'invalid_request');
    const malformed = await service.get('/v1/events', { 'last-event-id': '0' });
    expect(expectFailure(malformed, 'invalid_request').details).toHaveProperty('Last-Event-ID');
    const other = '0000000000000002.kQ3xv9Yb2mPq7LzTn4Rw6sHd';
    expectFailure(await service.get('/v1/events', { 'last-event-id': other }), 'position_unknown');
    expectFailure(await service.get(`/v1/events?format=jsonl&after=${other}`), 'position_unknown');
  });

  test('is cut off once the key is revoked', async () => {
    const account = await newKey(service.folder);
    const second = await newKey(service.folder, { account: account.account_id });
    const client = await clientWith(service.url, account);
    await clientWith(service.url, second);
    const stream = await follow('', {}, second.api_key);
    let isOver = false;
    void stream.ended.finally(() => void (isOver = true));
    const create = () =>
      client.post('/v1/agents', { name: 'x', instruction: 'x', model: 'scripted' });
    const actor = { account_id: account.account_id, key_id: 'operator', request_id: 'test' };
    await asOperator(service.folder, (operator) => revokeKey(operator, actor, second.key_id));
    await eventually(create, () => isOver);
    // It may have ended after it showed all that there was: this one it can not have shown.
    const { agent_id } = (await create()).body.data;
    const after = await page('/v1/events?format=jsonl&limit=1000', account.api_key);
    expect(after.events.at(-1).data).toMatchObject({ agent_id });
    expect(JSON.stringify(stream.events)).not.toContain(agent_id);
    expect((await follow('', {}, second.api_key)).status).toBe(401);
  }, 60_000);

  test('finds no place beyond the share of an account, and one again when another has left', async () => {
    const { api_key } = await newKey(service.folder);
    await eventually(
      () => page('/v1/events?format=jsonl', api_key),
      ({ status }) => status === 200,
    );
    const streams: OpenStream[] = [];
    for (
      let one = await follow('', {}, api_key);
      one.status === 200;
      one = await follow('', {}, api_key)
    )
      streams.push(one);
    expect(streams.length).toBeGreaterThan(LIMITS.feed.followers / 3);
    expect(streams.length).toBeLessThanOrEqual(LIMITS.feed.followers / 2);
    expect(open.at(-1)!.status).toBe(429);
    expect((await page('/v1/events?format=jsonl')).status).toBe(200);
    for (const stream of streams) stream.cut();
    await eventually(
      () => page('/v1/events?format=jsonl', api_key),
      ({ status }) => status === 200,
    );
  });
});

describe('the memory of events', () => {
  /** Bytes of events, in stored form, that the connections of clients that do not read can't take. */
  const EVENTS = 24;
  let api_key: string;

  /** A client that never reads. */
  function openDeaf(query: string): Socket {
    const { hostname, port } = new URL(service.url);
    const socket = connect(Number(port), hostname).pause();
    socket.on('error', () => undefined);
    socket.write(
      `GET /v1/events${query} HTTP/1.1\r\nhost: x\r\nx-api-key: ${api_key}\r\nconnection: close\r\n\r\n`,
    );
    return socket;
  }

  const reserved = async (): Promise<number> =>
    valueOf((await scrape(service)).text, 'turnlog_resource_used_bytes{resource="memory_answers"}');

  beforeAll(async () => {
    const account = await newKey(service.folder);
    ({ api_key } = account);
    const { post } = await clientWith(service.url, account);
    const body = { name: 'A', instruction: 'B.', model: 'scripted' };
    const { agent_id } = (await post('/v1/agents', body)).body.data;
    const input = `\u0101${'x'.repeat(400_000)}`;
    for (let count = 0; count < EVENTS; count += 1)
      await post(`/v1/agents/${agent_id}/run`, { input });
  }, 120_000);

  test('is reserved while a client does not read its stream, and no longer', async () => {
    const deaf = [openDeaf(''), openDeaf('')];
    // Stored, a text takes four bytes for three.
    const ofOne = LIMITS.feed.memoryPerByte * 400_000 * (4 / 3);
    await eventually(reserved, (bytes) => bytes >= deaf.length * ofOne);
    for (const socket of deaf) socket.destroy();
    await eventually(reserved, (bytes) => bytes === 0);
    const reader = await follow('', {}, api_key);
    await reader.until((events) => feedEvents(events).length === 1 + 3 * EVENTS);
    expect(feedEvents(reader.events)[2].data.input).toHaveLength(400_001);
    await eventually(reserved, (bytes) => bytes === 0);
  }, 60_000);

  test('is reserved while a page is sent, and no longer', async () => {
    const { next = '', events } = await page('/v1/events?format=jsonl&limit=1', api_key);
    expect(events).toHaveLength(1);
    expect((await page(next.replace('limit=1', 'limit=1000'), api_key)).events).toHaveLength(2);
    await eventually(reserved, (bytes) => bytes === 0);
  });
});

test('a shut-down ends the streams at once, and from their last ids they go on after a restart', async () => {
  const stream = await follow();
  const total = (await page('/v1/events?format=jsonl&limit=1000')).events.length;
  await stream.until((events) => feedEvents(events).length === total);
  const began = performance.now();
  const restarted = service.restart();
  await stream.ended;
  expect(performance.now() - began).toBeLessThan(5_000);
  await restarted;
  await run('after the restart');
  const again = await follow('', { 'last-event-id': stream.events.at(-1)!.id! });
  await again.until((events) => feedEvents(events).length === 3);
  expect(feedEvents(again.events)[1].data.input).toBe('after the restart');
});
