import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { ChatRequest } from '../../../shared/sessions/turns/chat.ts';
import { canonicalJson } from '../../../shared/eventlog/canonicalJson.ts';
import { sha256 } from '../../../shared/eventlog/hashChain.ts';
import type { Step } from '../../support/fakes/scriptedModel.ts';
import { closeRebuilt } from '../../support/http/rebuiltRequests.ts';
import { startTestService, type TestService } from '../../support/http/service.ts';

let service: TestService;
beforeEach(async () => {
  service = await startTestService();
});
afterEach(() => closeRebuilt(service));

/** True for the call that sums up, and not for one that answers. */
const sumsUp = ({ messages }: ChatRequest): boolean =>
  (messages[0]!.content ?? '').includes('Sum it up');

/** Answers about as long as they have to be to fill a narrow context within some turns. */
const answers = (summary: Step) => (request: ChatRequest) =>
  sumsUp(request) ? summary : { text: `Answer to ${request.messages.at(-1)!.content}` };

interface Context {
  turns: number;
  dropped: number;
  compacted?: number;
}

async function converse(agent: string, turns: number, session?: string) {
  const contexts: Context[] = [];
  let session_id = session;
  for (let turn = 1; turn <= turns; turn += 1) {
    const { status, body } = await service.post(`/v1/agents/${agent}/run`, {
      input: `question number ${turn}`,
      ...(session_id !== undefined && { session_id }),
    });
    expect(status).toBe(200);
    session_id = body.data.session_id as string;
    contexts.push(body.data.metadata.context);
  }
  return { session_id: session_id!, contexts };
}

const events = async (session: string) =>
  (await service.get(`/v1/sessions/${session}/events?limit=1000`)).body.data as {
    type: string;
    revision: number;
    data: Record<string, any>;
  }[];
const summaries = async (session: string) =>
  (await events(session)).filter(({ type }) => type === 'session.compacted.v1');
const prompts = (): ChatRequest[] => service.model.requests.filter((request) => !sumsUp(request));

describe('metadata.context', () => {
  test('says how many turns the model saw, and how many fell out of its context', async () => {
    const agent = await service.createAgent({ model: 'narrow' });
    const { session_id, contexts } = await converse(agent, 14);
    const seen = prompts().map(({ messages }) => (messages.length - 2) / 2);
    expect(contexts.map(({ turns }) => turns)).toEqual(seen);
    expect(contexts.map(({ turns, dropped }) => turns + dropped)).toEqual(
      contexts.map((_, index) => index),
    );
    expect(contexts.at(-1)!.dropped).toBeGreaterThan(2);
    const { data } = (await service.get(`/v1/sessions/${session_id}`)).body;
    expect(data.turns.map(({ context }: { context: Context }) => context)).toEqual(contexts);
  });

  test('counts no turn as dropped that had no answer, while all others are seen', async () => {
    const agent = await service.createAgent();
    service.model.use({ status: 400 });
    const failed = await service.post(`/v1/agents/${agent}/run`, { input: 'a' });
    expect(failed.status).toBe(502);
    const [{ session_id }] = (await service.get('/v1/sessions')).body.data;
    service.model.use({ text: 'Hello.' });
    const { contexts } = await converse(agent, 2, session_id);
    expect(contexts).toEqual([
      { turns: 0, dropped: 0 },
      { turns: 1, dropped: 0 },
    ]);
  });

  test('is the same after a restart', async () => {
    const agent = await service.createAgent({ model: 'narrow' });
    const { session_id, contexts } = await converse(agent, 12);
    await service.restart();
    const next = (await converse(agent, 1, session_id)).contexts[0]!;
    expect(next.turns + next.dropped).toBe(12);
    expect(next.turns).toBe(contexts.at(-1)!.turns);
  });
});

describe('compaction', () => {
  const compacting = () => service.createAgent({ model: 'narrow', compaction: true });

  test('sums up older turns before they fall out, and later prompts start from the summary', async () => {
    service.model.use(answers({ text: 'They asked questions.' }));
    const { session_id, contexts } = await converse(await compacting(), 20);
    const compacted = await summaries(session_id);
    expect(compacted.length).toBeGreaterThan(1);
    expect(contexts.map(({ dropped }) => dropped)).toEqual(contexts.map(() => 0));
    const { turns, compacted: upTo } = contexts.at(-1)!;
    expect(turns + upTo!).toBe(19);
    expect(compacted.at(-1)!.data).toMatchObject({
      model: 'narrow',
      up_to_turn: upTo,
      summary: { text: 'They asked questions.' },
      summary_revision: compacted.at(-2)!.revision,
    });
    expect(prompts().at(-1)!.messages[0]!.content).toBe(
      'Be brief.\n\nWhat was said before, in short:\nThey asked questions.',
    );
    const transcript = (await service.get(`/v1/sessions/${session_id}`)).body.data.turns;
    expect(transcript.map(({ input }: { input: string }) => input)).toEqual(
      contexts.map((_, index) => `question number ${index + 1}`),
    );
  });

  test('records the hash of the request that summed up, and that request holds the turns', async () => {
    service.model.use(answers({ text: 'They asked.' }));
    const { session_id } = await converse(await compacting(), 10);
    const [first] = await summaries(session_id);
    const request = service.model.requests.find(sumsUp)!;
    expect(first!.data['call'].request_sha256.text).toBe(sha256(canonicalJson(request)));
    const { from_turn, up_to_turn } = first!.data as { from_turn: number; up_to_turn: number };
    expect(from_turn).toBe(1);
    for (let turn = 1; turn <= up_to_turn; turn += 1)
      expect(request.messages[1]!.content).toContain(`User: question number ${turn}\nAssistant: `);
    expect(request.messages[1]!.content).not.toContain(`question number ${up_to_turn + 1}`);
    expect(request.max_completion_tokens).toBe(50);
  });

  test('goes on from the summary after a restart', async () => {
    service.model.use(answers({ text: 'They asked.' }));
    const agent = await compacting();
    const { session_id, contexts } = await converse(agent, 12);
    await service.restart();
    const next = (await converse(agent, 1, session_id)).contexts[0]!;
    expect(next.dropped).toBe(0);
    expect(next.compacted).toBeGreaterThanOrEqual(contexts.at(-1)!.compacted!);
    expect(prompts().at(-1)!.messages[0]!.content).toContain('They asked.');
  });

  test.each<[string, Step]>([
    ['is refused', { status: 400 }],
    ['says nothing', { text: ' ' }],
    ['says too much', { text: 'x'.repeat(20_000) }],
  ])('goes on without, and asks again only turns later, where the model %s', async (_, step) => {
    service.model.use(answers(step));
    const { session_id, contexts } = await converse(await compacting(), 18);
    expect(await summaries(session_id)).toEqual([]);
    expect(contexts.at(-1)!.dropped).toBeGreaterThan(5);
    const tries = service.model.requests.filter(sumsUp).length;
    expect(tries).toBe(1);
  });

  test('leaves a summary out that takes more than half of the room, and the session goes on', async () => {
    service.model.use(answers({ text: 'long word '.repeat(60) }));
    const { session_id, contexts } = await converse(await compacting(), 14);
    expect((await summaries(session_id)).length).toBeGreaterThan(0);
    const { turns, dropped } = contexts.at(-1)!;
    expect(contexts.at(-1)).not.toHaveProperty('compacted');
    expect(turns + dropped).toBe(13);
    expect(contexts.at(-1)!.turns).toBeGreaterThan(0);
  });

  test('that begins late says what had fallen out before, and goes on saying so', async () => {
    service.model.use(answers({ text: 'They asked.' }));
    const agent = await service.createAgent({ model: 'narrow' });
    const { session_id, contexts } = await converse(agent, 12);
    const { dropped } = contexts.at(-1)!;
    expect(dropped).toBeGreaterThan(2);
    await service.send('PATCH', `/v1/agents/${agent}`, { compaction: true });
    const later = (await converse(agent, 8, session_id)).contexts;
    expect(later.at(-1)!.compacted).toBeGreaterThan(dropped);
    expect(later.at(-1)!.dropped).toBeGreaterThanOrEqual(dropped);
    const [first] = await summaries(session_id);
    expect(first!.data['from_turn']).toBe(first!.data['dropped'] + 1);
  });

  test('is not done for an agent that does not ask for it', async () => {
    service.model.use(answers({ text: 'They asked.' }));
    const { session_id } = await converse(await service.createAgent({ model: 'narrow' }), 12);
    expect(await summaries(session_id)).toEqual([]);
    expect(service.model.requests.filter(sumsUp)).toEqual([]);
  });
});
