import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startTestService, type TestService } from '../../support/http/service.ts';
import { comparisonsIn, endOf, eventsOf, startReplayOf } from '../../support/replays/replays.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService(({ messages }) => ({
    text: `${messages.length}: ${messages.at(-1)?.content}`,
  }));
});
afterAll(() => service.close());

/** A session of the agent, a turn for each input. */
async function session(agent: string, inputs: readonly string[]): Promise<string> {
  let session_id: string | undefined;
  for (const input of inputs) {
    const { body } = await service.post(`/v1/agents/${agent}/run`, {
      input,
      ...(session_id && { session_id }),
    });
    session_id = body.data.session_id as string;
  }
  return session_id!;
}

test('a session is replayed in one of its own, which says so, with the same requests and answers', async () => {
  const agent = await service.createAgent();
  const recorded = await session(agent, ['One?', 'Two? 😀', 'Three?']);
  const before = await eventsOf(service.folder, recorded);
  const asked = service.model.bodies.slice(-3);
  const id = await startReplayOf(service.folder, { sessions: [recorded] });
  const told = await endOf(service.folder, id);
  expect(told.events.at(-1)).toMatchObject({ data: { status: 'completed' } });
  expect(comparisonsIn(told)).toMatchObject(
    [1, 2, 3].map((turn) => ({ turn, replay_turn: turn, outcome: 'same', requests: 'same' })),
  );
  const replayed = await eventsOf(service.folder, told.made.get(recorded)!);
  expect(replayed[0]).toMatchObject({
    type: 'session.started.v1',
    data: { agent_id: agent, replay: { replay_id: id, session_id: recorded, role: 'replay' } },
  });
  expect(service.model.bodies.slice(-3)).toEqual(asked);
  expect(await eventsOf(service.folder, recorded)).toEqual(before);
}, 60_000);
