import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { ChatRequest } from '../../../shared/domain/session/chat.ts';
import { startTestService, type TestService } from '../../support/http/service.ts';

let service: TestService;
let agent: string;
const answerOf = ({ messages }: ChatRequest) => ({ text: `answer to ${messages.at(-1)!.content}` });
beforeAll(async () => {
  service = await startTestService(answerOf);
  agent = await service.createAgent();
});
afterAll(async () => service.close());

/** Goes on with a session, or begins one; resolves with its id. */
async function run(inputs: string[], session_id?: string): Promise<string> {
  for (const input of inputs) {
    const body = { input, ...(session_id && { session_id }) };
    const { status, body: answer } = await service.post(`/v1/agents/${agent}/run`, body);
    expect([status, answer.code]).toEqual([200, undefined]);
    session_id = answer.data.session_id as string;
  }
  return session_id!;
}

/** Forks a session; resolves with the fork as it was answered. */
async function fork(session: string, at_turn: number) {
  const { status, body } = await service.post(`/v1/sessions/${session}/fork`, { at_turn });
  expect([status, body.code]).toEqual([200, undefined]);
  return body.data;
}

const transcript = async (session: string, query = '') =>
  (await service.get(`/v1/sessions/${session}${query}`)).body.data;
const inputsOf = (data: { turns: { turn: number; input: string }[] }) =>
  data.turns.map(({ turn, input }) => `${turn} ${input}`);

test('a fork goes on after a turn of its origin, with the prompts that the origin would have', async () => {
  const origin = await run(['a', 'b', 'c']);
  const forked = await fork(origin, 2);
  expect(forked).toMatchObject({ agent_id: agent, status: 'idle', turn_count: 2, title: null });
  const { data: events } = (await service.get(`/v1/sessions/${origin}/events`)).body;
  const end = events.find(
    ({ type, data }: { type: string; data: { turn: number } }) =>
      type === 'session.turn_completed.v1' && data.turn === 2,
  );
  expect(forked.forked_from).toEqual({
    session_id: origin,
    turn: 2,
    revision: end.revision,
    hash: end.metadata.hash,
  });
  await run(['d'], forked.session_id);
  const [instruction, ...messages] = JSON.parse(service.model.bodies.at(-1)!).messages;
  expect(instruction.role).toBe('system');
  expect(messages.map(({ content }: { content: string }) => content)).toEqual([
    'a',
    'answer to a',
    'b',
    'answer to b',
    'd',
  ]);
  const shown = await transcript(forked.session_id);
  expect(inputsOf(shown)).toEqual(['1 a', '2 b', '3 d']);
  expect(shown.turns.map((turn: object) => (turn as any).origin_session_id)).toEqual([
    origin,
    origin,
    undefined,
  ]);
  expect(shown.forked_from).toEqual({ ...forked.forked_from, erased: false });
  expect(inputsOf(await transcript(origin))).toEqual(['1 a', '2 b', '3 c']);
});
