/** What answers say of writes that the read models are late with. */
import { expect, test } from '@jest/globals';
import { openEvents, type Heard } from '../../support/http/sse.ts';
import { startTestService } from '../../support/http/service.ts';
import { holdProjection } from '../../support/stores/projections/heldProjection.ts';
import { eventually } from '../../support/processes/operator.ts';

const VISIBLE = 'x-turnlog-visible';

test('a write that the read models do not show in time is answered all the same, and its answer says so', async () => {
  const service = await startTestService(
    { text: 'Done.' },
    { VISIBILITY_WAIT_MS: '5000', MODEL_MAX_RETRIES: '0' },
  );
  const agent = await service.createAgent();
  let changes = 0;
  const change = () =>
    service.send('PATCH', `/v1/agents/${agent}`, { name: `Late ${(changes += 1)}` });
  const run = () => service.post(`/v1/agents/${agent}/run`, { input: 'x' });
  const told = async (asked: ReturnType<typeof run>) => {
    const { status, headers } = await asked;
    return [status, headers.get(VISIBLE)];
  };
  // Nothing waits for the new agent any more.
  await service.get('/v1/agents');
  const release = holdProjection(service.folder);
  try {
    const changed = told(change());
    // The turn ends when it is known that the projector makes no progress.
    service.model.use(() => changed.then(() => ({ status: 500 })));
    expect(await Promise.all([changed, told(run())])).toEqual([
      [200, 'false'],
      [502, 'false'],
    ]);
    expect(await told(service.post('/v1/agents', {}))).toEqual([400, null]);
    // One that would answer with less than was acknowledged is refused.
    expect(await told(service.get('/v1/agents'))).toEqual([503, null]);
  } finally {
    release();
  }
  await eventually(change, ({ status, headers }) => status === 200 && !headers.has(VISIBLE));
  await service.close();
}, 60_000);

test('an equal change is late as well, and answers what the first one recorded', async () => {
  const service = await startTestService(
    { text: 'Done.' },
    { VISIBILITY_WAIT_MS: '5000', WEBHOOKS_ALLOW_PRIVATE: 'true' },
  );
  const agent = `/v1/agents/${await service.createAgent()}`;
  const created = await service.post('/v1/webhooks', { url: 'http://127.0.0.1:9/' });
  const webhook = `/v1/webhooks/${created.body.data.webhook_id as string}`;
  const twice = (path: string, body: object) =>
    Promise.all([1, 2].map(() => service.send('PATCH', path, body)));
  let round = 0;
  async function changeWhileHeld() {
    round += 1;
    const release = holdProjection(service.folder);
    try {
      return await Promise.all([
        twice(agent, { name: `Renamed ${round}` }),
        twice(webhook, { enabled: round % 2 === 0 }),
      ]);
    } finally {
      release();
    }
  }
  // A change that begins after another one was answered as late is refused, before it reads anything.
  const changes = await eventually(changeWhileHeld, (pairs) =>
    pairs.flat().every(({ status }) => status !== 503),
  );
  expect(changes.flat().map(({ headers }) => headers.get(VISIBLE))).toEqual(
    changes.flat().map(() => 'false'),
  );
  const [one, other] = changes[0];
  expect(other!.body).toEqual(one!.body);
  expect(other!.headers.get('etag')).toBe(one!.headers.get('etag'));
  await service.close();
}, 60_000);

test('a session that a stream has named is in the next reads, also while the projector gathers events', async () => {
  let answers = Promise.withResolvers<void>();
  const service = await startTestService(() => answers.promise.then(() => ({ text: 'Done.' })));
  const agent = await service.createAgent();
  const headers = { 'x-api-key': service.key, 'content-type': 'application/json' };
  const body = JSON.stringify({ input: 'hi' });
  const run = () =>
    openEvents(`${service.url}/v1/agents/${agent}/run`, { method: 'POST', headers, body });
  const seen: unknown[] = [];
  for (let number = 0; number < 10; number += 1) {
    answers = Promise.withResolvers();
    const { events } = await run();
    const { session_id } = ((await events.next()).value as Heard).data;
    const session = await service.get(`/v1/sessions/${session_id}`);
    answers.resolve();
    for await (const _ of events);
    seen.push(session.body.data?.session_id === session_id);
    // The projector pauses after it has applied the end of a turn.
    await service.get('/v1/sessions');
  }
  expect(seen).toEqual(seen.map(() => true));
  await service.close();
}, 60_000);

test('a new agent is listed, found and run at once, also while the projector gathers events', async () => {
  const service = await startTestService({ text: 'Done.' });
  for (let number = 0; number < 5; number += 1) {
    const listed = await service.createAgent();
    expect(JSON.stringify((await service.get('/v1/agents')).body)).toContain(listed);
    const found = await service.createAgent();
    expect((await service.get(`/v1/agents/${found}`)).status).toBe(200);
    const used = await service.createAgent();
    expect((await service.post(`/v1/agents/${used}/run`, { input: 'x' })).status).toBe(200);
  }
  await service.close();
}, 60_000);
