import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { revokeKey } from '../../../shared/accounts/commands.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { asOperator, clientWith, eventually, newKey } from '../../support/processes/operator.ts';
import { allEvents, openEvents, textIn, type Heard } from '../../support/http/sse.ts';
import { startTestService, type TestService } from '../../support/http/service.ts';

const TEXT = 'Grüße 👩‍👩‍👧 and 😀 to all of you.';

let service: TestService;
let agent: string;
beforeAll(async () => {
  service = await startTestService();
  agent = await service.createAgent({ tool: 'calculator' });
});
afterAll(() => service.close());

const headers = () => ({ 'x-api-key': service.key, 'content-type': 'application/json' });
const run = (body: object = { input: 'hi' }, more: Record<string, string> = {}) =>
  openEvents(`${service.url}/v1/agents/${agent}/run`, {
    method: 'POST',
    headers: { ...headers(), ...more },
    body: JSON.stringify(body),
  });
const follow = (path: string, lastEventId?: string) =>
  openEvents(`${service.url}/v1/sessions/${path}/stream`, {
    headers: { ...headers(), ...(lastEventId && { 'last-event-id': lastEventId }) },
  });
/** What a heart-beat or the network leaves as it was: without what says where it came from. */
const content = (events: readonly Heard[]) =>
  events
    .filter(({ event }) => event !== 'output.delta')
    .map(({ event, data: { recorded: _recorded, request_id: _request, ...data } }) => [
      event,
      data,
    ]);

/** A model that says a piece whenever it is let. */
function steps(...pieces: string[]) {
  const gates = pieces.map(() => Promise.withResolvers<void>());
  service.model.use({
    async respond(response) {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      for (const [index, piece] of pieces.entries()) {
        const choices = [{ index: 0, delta: { content: piece }, finish_reason: null }];
        response.write(`data: ${JSON.stringify({ id: 'c', model: 'm', choices })}\n\n`);
        await gates[index]!.promise;
      }
      const choices = [{ index: 0, delta: {}, finish_reason: 'stop' }];
      response.end(`data: ${JSON.stringify({ choices })}\n\ndata: [DONE]\n\n`);
    },
  });
  return (index: number) => gates[index]!.resolve();
}

/** The next event that is not the beginning of the turn. */
const next = async (events: AsyncGenerator<Heard>): Promise<Heard> => {
  const { value } = await events.next();
  return value as Heard;
};

describe('a run that is streamed', () => {
  test('tells its beginning, its text and its end, which is the answer as JSON has it', async () => {
    service.model.use({ pieces: TEXT.split(/(?<= )/) });
    const stream = await run();
    expect(stream.status).toBe(200);
    expect(stream.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    expect(stream.headers.get('cache-control')).toBe('no-store');
    const events = await allEvents(stream);
    const { session_id } = events[0]!.data;
    expect(events[0]).toEqual({
      id: undefined,
      event: 'turn.started',
      data: { session_id, turn: 1 },
    });
    expect(textIn(events)).toBe(TEXT);
    const { metadata } = events.at(-1)!.data.data;
    expect(events.at(-1)).toEqual({
      id: '1-end',
      event: 'turn.completed',
      data: { success: true, status: 200, data: { output: TEXT, session_id, metadata } },
    });
    const [turn] = (await service.get(`/v1/sessions/${session_id}`)).body.data.turns;
    expect(turn).toMatchObject({ output: TEXT, tokens: metadata.tokens, model: metadata.model });
  });

  test('asks the model for a stream only then', async () => {
    service.model.use({ text: 'Hi' });
    await allEvents(await run());
    expect(service.model.requests.at(-1)).toHaveProperty('stream', true);
    await service.post(`/v1/agents/${agent}/run`, { input: 'hi' }, { accept: '*/*' });
    expect(service.model.requests.at(-1)).not.toHaveProperty('stream');
  });

  test('shows a piece while the model still speaks, also through a proxy that would compress', async () => {
    const go = steps('one ', 'two');
    const stream = await run(undefined, { 'accept-encoding': 'gzip, br' });
    expect(stream.headers.get('content-encoding')).toBeNull();
    await next(stream.events);
    expect((await next(stream.events)).data).toEqual({ round: 1, text: 'one ' });
    go(0);
    expect((await next(stream.events)).data).toEqual({ round: 1, text: 'two' });
    go(1);
    expect((await next(stream.events)).event).toBe('turn.completed');
  });

  test('tells each tool call as the transcript shows it, and the texts of its rounds apart', async () => {
    service.model.use([
      {
        text: 'Let me see.',
        tool_calls: [{ id: 'c1', name: 'calculator', arguments: '{"expression":"6*7"}' }],
      },
      { text: 'It is 42.' },
    ]);
    const events = await allEvents(await run());
    const { session_id } = events[0]!.data;
    expect([textIn(events, 1), textIn(events, 2)]).toEqual(['Let me see.', 'It is 42.']);
    const [turn] = (await service.get(`/v1/sessions/${session_id}`)).body.data.turns;
    const called = events.filter(({ event }) => event === 'tool.called');
    expect(called.map(({ data }) => data)).toEqual(turn.tool_calls);
    expect(turn.tool_calls).toHaveLength(1);
  });

  test('answers what goes wrong before its turn began like any other request', async () => {
    service.model.use({ text: 'Hi' });
    const response = await service.post(
      `/v1/agents/${agent}/run`,
      { input: 'hi', session_id: 'session_01kahz1c3sf6w9m3v5q7x9z1a3' },
      { accept: 'text/event-stream' },
    );
    expect([response.status, response.body.code]).toEqual([404, 'session_not_found']);
  });

  test('ends with the failure, where the model fails in the middle of its answer', async () => {
    service.model.use({
      respond(response) {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        const choices = [{ index: 0, delta: { content: 'Some' } }];
        response.end(`data: ${JSON.stringify({ choices })}\n\n`);
      },
    });
    const events = await allEvents(await run());
    expect(textIn(events)).toBe('Some');
    expect(events.at(-1)).toMatchObject({
      id: '1-end',
      event: 'error',
      data: { success: false, code: 'model_error', status: 502, request_id: expect.any(String) },
    });
    const { session_id } = events[0]!.data;
    const [turn] = (await service.get(`/v1/sessions/${session_id}`)).body.data.turns;
    expect(turn).toMatchObject({ status: 'failed', output: null });
    const again = await allEvents(await follow(`${session_id}/turns/1`));
    expect(content(again)).toEqual(content(events));
  });

  test('goes on when its client leaves', async () => {
    const go = steps('one ', 'two');
    const stream = await run();
    const { session_id } = (await next(stream.events)).data;
    await next(stream.events);
    stream.leave();
    go(0);
    go(1);
    const turn = await eventually(
      async () => (await service.get(`/v1/sessions/${session_id}`)).body.data.turns[0],
      ({ status }) => status !== 'running',
    );
    expect(turn).toMatchObject({ status: 'completed', output: 'one two' });
  });
});

describe('the stream of a turn', () => {
  test('goes on behind any event of the run while it runs, nothing missing and nothing twice', async () => {
    const go = steps('one 😀', ' two', ' three');
    const stream = await run();
    const { session_id } = (await next(stream.events)).data;
    const first = await next(stream.events);
    const other = await follow(`${session_id}/turns/1`, first.id);
    const whole = await follow(`${session_id}/turns/1`);
    go(0);
    expect((await next(other.events)).data).toEqual({ round: 1, text: ' two' });
    go(1);
    go(2);
    const [rest, all, own] = await Promise.all([other, whole, stream].map(allEvents));
    expect(textIn(rest!)).toBe(' three');
    expect(textIn(all!)).toBe('one 😀 two three');
    expect(rest!.at(-1)).toEqual(own!.at(-1));
    expect(all![0]).toMatchObject({ event: 'turn.started', data: { session_id, turn: 1 } });
  });

  test('is the same for ever after it, from whichever event, and says that it is the record', async () => {
    service.model.use([
      {
        text: `So: ${TEXT}`,
        tool_calls: [{ id: 'c', name: 'calculator', arguments: '{"expression":"1+1"}' }],
      },
      { pieces: TEXT.match(/.{1,5}/gsu)! },
    ]);
    const live = await allEvents(await run());
    const { session_id } = live[0]!.data;
    const path = `${session_id}/turns/1`;
    const whole = await allEvents(await follow(path));
    expect(content(whole)).toEqual(content(live));
    expect(textIn(whole, 2)).toBe(TEXT);
    expect(whole.find(({ event }) => event === 'output.delta')!.data.recorded).toBe(true);
    for (const [index, { id }] of live.slice(1, -1).entries()) {
      const rest = await allEvents(await follow(path, id));
      const had = live.slice(0, index + 2);
      expect([1, 2].map((round) => textIn(had, round) + textIn(rest, round))).toEqual([
        `So: ${TEXT}`,
        TEXT,
      ]);
      expect(content([...had, ...rest])).toEqual(content(live));
    }
    const over = await follow(path, live.at(-1)!.id);
    expect(over.status).toBe(204);
  });

  test('is there for a run that nobody streamed, as soon as it is recorded', async () => {
    service.model.use({ text: 'Later.', delay_ms: 400 });
    const { session_id } = (await service.post(`/v1/agents/${agent}/run`, { input: 'hi' })).body
      .data;
    const running = service.post(`/v1/agents/${agent}/run`, { input: 'again', session_id });
    const stream = await eventually(
      () => follow(`${session_id}/turns/2`),
      ({ status }) => status === 200,
    );
    const events = await allEvents(stream);
    expect([textIn(events), events.at(-1)!.data]).toEqual(['Later.', (await running).body]);
  });

  test('is there for an old turn of a long session', async () => {
    service.model.use((_, index) => ({ text: `answer ${index}` }));
    const { session_id } = (await service.post(`/v1/agents/${agent}/run`, { input: 'hi' })).body
      .data;
    for (let turn = 2; turn <= 12; turn += 1)
      await service.post(`/v1/agents/${agent}/run`, { input: 'hi', session_id });
    const texts = [];
    for (const turn of [1, 2, 7, 12])
      texts.push(textIn(await allEvents(await follow(`${session_id}/turns/${turn}`))));
    expect(texts).toEqual(['answer 0', 'answer 1', 'answer 6', 'answer 11']);
    await expect(follow(`${session_id}/turns/13`)).resolves.toMatchObject({ status: 404 });
  });

  test('of an answer that is not what was asked for has its text and its failure, for ever', async () => {
    const strict = await service.createAgent({ response_format: { type: 'json_object' } });
    service.model.use({ text: 'No JSON.' });
    const live = await allEvents(
      await openEvents(`${service.url}/v1/agents/${strict}/run`, {
        method: 'POST',
        headers: headers(),
        body: '{"input":"hi"}',
      }),
    );
    expect(live.at(-1)).toMatchObject({ event: 'error', data: { code: 'model_error' } });
    const { session_id } = live[0]!.data;
    const expectSame = async (): Promise<void> => {
      const again = await allEvents(await follow(`${session_id}/turns/1`));
      expect(content(again)).toEqual(content(live));
      expect(textIn(again)).toBe('No JSON.');
    };
    await expectSame();
    service.model.use({ text: '{}' });
    // So many that it is read from the read models.
    for (let turn = 2; turn <= 12; turn += 1)
      await service.post(`/v1/agents/${strict}/run`, { input: 'hi', session_id });
    await expectSame();
  });

  test('answers at once what is not there, and what names no place', async () => {
    service.model.use({ text: 'Hi' });
    const { session_id } = (await service.post(`/v1/agents/${agent}/run`, { input: 'hi' })).body
      .data;
    const began = performance.now();
    const path = (id: string, turn: string) =>
      service.get(`/v1/sessions/${id}/turns/${turn}/stream`);
    const none = 'session_01kahz1c3sf6w9m3v5q7x9z1a3';
    expect((await path(none, '1')).body.code).toBe('session_not_found');
    for (const turn of ['0', '2', '-1', '1.0', 'x', '01', '99999999999'])
      expect((await path(session_id, turn)).body.code).toBe('turn_not_found');
    expect(performance.now() - began).toBeLessThan(5_000);
    for (const id of [
      'x',
      '2-1-0',
      '1-0-0',
      '1-1',
      '1-1-x',
      '1-end-',
      '1-1-1-0',
      ' '.repeat(4_000) + '1',
    ]) {
      const answer = await service.get(`/v1/sessions/${session_id}/turns/1/stream`, {
        'last-event-id': id,
      });
      expect(answer.body).toMatchObject({
        code: 'invalid_request',
        details: { 'Last-Event-ID': { path: 'header/Last-Event-ID' } },
      });
    }
  });
});

describe('a key that is revoked', () => {
  const OTHER = { key_id: 'operator', request_id: 'test' };

  /** An account with an agent and two keys; the second one can be revoked. */
  async function twoKeys() {
    const account = await newKey(service.folder);
    const { account_id } = account;
    const second = await newKey(service.folder, { account: account_id });
    const client = await clientWith(service.url, account);
    const revoked = await clientWith(service.url, second);
    const created = await client.post('/v1/agents', {
      name: 'A',
      instruction: 'I',
      model: 'scripted',
    });
    const path = `/v1/agents/${created.body.data.agent_id}/run`;
    const runWith = ({ api_key }: { api_key: string }) =>
      openEvents(`${service.url}${path}`, {
        method: 'POST',
        headers: { ...headers(), 'x-api-key': api_key },
        body: '{"input":"hi"}',
      });
    const revoke = async () => {
      await asOperator(service.folder, (operator) =>
        revokeKey(operator, { account_id, ...OTHER }, second.key_id),
      );
      await sleep(LIMITS.feed.keyCheckMs + 500);
    };
    return { account, second, client, revoked, path, runWith, revoke };
  }

  test('hears no more of a turn that it follows', async () => {
    const { account, second, runWith, revoke } = await twoKeys();
    const go = steps('one ', 'two');
    const own = await runWith(account);
    const { session_id } = (await next(own.events)).data;
    const stream = await openEvents(`${service.url}/v1/sessions/${session_id}/turns/1/stream`, {
      headers: { 'x-api-key': second.api_key },
    });
    await next(stream.events);
    await next(stream.events);
    await revoke();
    go(0);
    expect(await allEvents(stream)).toEqual([]);
    go(1);
    expect((await allEvents(own)).at(-1)).toMatchObject({ event: 'turn.completed' });
  }, 30_000);

  test('hears no more of a turn that it started', async () => {
    const { second, runWith, revoke } = await twoKeys();
    const go = steps('one ', 'two');
    const own = await runWith(second);
    await next(own.events);
    await next(own.events);
    await revoke();
    go(0);
    expect(await allEvents(own)).toEqual([]);
    go(1);
  }, 30_000);

  test('starts no turn that waited for its session', async () => {
    const { account, client, revoked, path, runWith, revoke } = await twoKeys();
    const go = steps('one ', 'two');
    const own = await runWith(account);
    const { session_id } = (await next(own.events)).data;
    const queued = revoked.post(path, { input: 'me too', session_id });
    await sleep(200);
    await revoke();
    go(0);
    go(1);
    await allEvents(own);
    expect(await queued).toMatchObject({ status: 401, body: { code: 'unauthorized' } });
    const { body } = await client.get(`/v1/sessions/${session_id}`);
    expect(body.data.turns).toHaveLength(1);
  }, 30_000);

  test('gets neither the turn nor the events that it waited for', async () => {
    const { account, revoked, runWith, revoke } = await twoKeys();
    const go = steps('one ', 'two');
    const own = await runWith(account);
    const { session_id } = (await next(own.events)).data;
    const turn = revoked.get(`/v1/sessions/${session_id}/turns/1`, { prefer: 'wait=20' });
    const events = revoked.get('/v1/events?format=jsonl&from=now&wait=20');
    await sleep(200);
    await revoke();
    go(0);
    go(1);
    await allEvents(own);
    expect([(await turn).status, (await events).status]).toEqual([401, 401]);
  }, 30_000);
});

test('a stop ends a stream with an error that is true, and does not wait for who follows', async () => {
  const own = await startTestService({ text: 'Hi' }, { SHUTDOWN_GRACE_MS: '100' });
  try {
    const agentId = await own.createAgent();
    own.model.use({ fault: 'never_answer' });
    const stream = await openEvents(`${own.url}/v1/agents/${agentId}/run`, {
      method: 'POST',
      headers: { 'x-api-key': own.key, 'content-type': 'application/json' },
      body: '{"input":"hi"}',
    });
    const { session_id } = (await next(stream.events)).data;
    const began = performance.now();
    const rest = allEvents(stream);
    await Promise.all([own.restart(), rest]);
    expect(performance.now() - began).toBeLessThan(15_000);
    expect((await rest).at(-1)).toMatchObject({
      event: 'error',
      data: { code: 'turn_interrupted', retry: 'new_key' },
    });
    const again = await openEvents(`${own.url}/v1/sessions/${session_id}/turns/1/stream`, {
      headers: { 'x-api-key': own.key },
    });
    expect((await allEvents(again)).at(-1)).toMatchObject({
      event: 'error',
      data: { code: 'turn_interrupted' },
    });
  } finally {
    await own.close();
  }
}, 60_000);

test('a client that is slow to read holds nobody up, and misses nothing', async () => {
  service.model.use({ pieces: Array.from({ length: 70 }, () => 'x'.repeat(10_000)) });
  const slow = await run();
  const { session_id } = (await next(slow.events)).data;
  await sleep(100);
  const other = await allEvents(await follow(`${session_id}/turns/1`));
  expect(textIn(other)).toHaveLength(700_000);
  expect(textIn(await allEvents(slow))).toHaveLength(700_000);
});

describe('a streaming run that is sent again with its key', () => {
  const keyed = (key: string, lastEventId?: string) =>
    run(
      { input: 'hi' },
      {
        'idempotency-key': key,
        ...(lastEventId !== undefined && { 'last-event-id': lastEventId }),
      },
    );

  test('continues after the last event that the client has', async () => {
    const go = steps('one ', 'two ', 'three');
    const key = randomUUID();
    const first = await keyed(key);
    await next(first.events);
    const { id } = await next(first.events);
    first.leave();
    const again = await keyed(key, id);
    expect(again.headers.get('idempotency-replayed')).toBe('true');
    for (const index of [0, 1, 2]) go(index);
    const rest = await allEvents(again);
    expect([textIn(rest), rest.at(-1)!.event]).toEqual(['two three', 'turn.completed']);
    expect(rest.map(({ event }) => event)).not.toContain('turn.started');
    // Afterwards, from the record.
    const recorded = await allEvents(await keyed(key, id));
    expect([textIn(recorded), recorded.at(-1)!.data.data.output]).toEqual([
      'two three',
      'one two three',
    ]);
    const end = await allEvents(await keyed(key, '1-end'));
    expect(end).toEqual([expect.objectContaining({ id: '1-end', event: 'turn.completed' })]);
    expect(textIn(await allEvents(await keyed(key)))).toBe('one two three');
  });

  test('is refused with an id that is malformed or of another turn, and no run is started', async () => {
    service.model.use({ text: 'Hi' });
    const key = randomUUID();
    const asked = service.model.requests.length;
    expect((await keyed(key, 'x')).status).toBe(400);
    expect((await keyed(key, '1-0-1')).status).toBe(400);
    expect(service.model.requests).toHaveLength(asked);
    await allEvents(await keyed(key));
    const other = await service.post(
      `/v1/agents/${agent}/run`,
      { input: 'hi' },
      { accept: 'text/event-stream', 'idempotency-key': key, 'last-event-id': '2-1-1' },
    );
    expect([other.status, Object.keys(other.body.details!)]).toEqual([400, ['Last-Event-ID']]);
  });

  test('is refused with an id of another turn also where the turn has failed', async () => {
    service.model.use({ status: 400 });
    const key = randomUUID();
    expect((await allEvents(await keyed(key))).at(-1)!.event).toBe('error');
    // The failure of the turn, which nobody awaits here, is no unhandled rejection: that would fail the test.
    expect((await keyed(key, '2-1-1')).status).toBe(400);
    expect((await allEvents(await keyed(key))).at(-1)!.event).toBe('error');
  });
});
