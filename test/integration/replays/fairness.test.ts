import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { LIMITS } from '../../../shared/limits.ts';
import { startTestService, type Client, type TestService } from '../../support/http/service.ts';
import { clientWith, eventually, newKey } from '../../support/processes/operator.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService({ text: 'Done.' });
}, 120_000);
afterAll(() => service.close());

/** Records so many sessions with this input. */
async function record(client: Client, input: string, count: number): Promise<string[]> {
  const agent = { name: 'A', instruction: 'Be brief.', model: 'scripted' };
  const { agent_id } = (await client.post('/v1/agents', agent)).body.data;
  const run = () => client.post(`/v1/agents/${agent_id}/run`, { input });
  const replies = await Promise.all(Array.from({ length: count }, run));
  return replies.map(({ body }) => body.data.session_id as string);
}

async function startReplay(client: Client, sessions: readonly string[]): Promise<string> {
  const settings = { sessions, concurrency: LIMITS.replays.concurrency };
  return (await client.post('/v1/replays', settings)).body.data.replay_id as string;
}

test('a replay does not wait for the slow models of another account', async () => {
  const { turns, concurrency } = LIMITS.replays;
  const other = await clientWith(service.url, await newKey(service.folder));
  const quick = await record(other, 'quick', 1);
  const slow = await record(service, 'slow', concurrency);
  const before = service.model.requests.length;
  service.model.use(({ messages }) =>
    messages.at(-1)!.content === 'slow' ? { fault: 'never_answer' } : { text: 'Done.' },
  );
  await startReplay(service, slow);
  await startReplay(service, slow);
  await eventually(
    async () => service.model.requests.length - before,
    (asked) => asked >= turns - 1,
  );
  const replay = await startReplay(other, quick);
  const { body } = await eventually(
    () => other.get(`/v1/replays/${replay}`),
    (reply) => reply.body.data.status !== 'running',
  );
  expect(body.data.status).toBe('completed');
}, 30_000);
