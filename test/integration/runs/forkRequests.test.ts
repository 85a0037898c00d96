import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { echo, forking } from '../../support/http/forking.ts';
import { startTestService, type TestService } from '../../support/http/service.ts';

let service: TestService;
let does: ReturnType<typeof forking>;
beforeAll(async () => {
  service = await startTestService((request) =>
    JSON.stringify(request.messages[0]).includes('Sum it up')
      ? { text: `in short: ${String(request.messages.at(-1)!.content).length}` }
      : echo(request),
  );
  does = forking(service);
});
afterAll(() => service.close());

const INPUTS = Array.from(
  { length: 12 },
  (_, index) => `turn ${index + 1} ${'so it is '.repeat(4)}`,
);

/** What is recorded of each turn: its context, and its requests' hashes; and of each summary. */
async function recorded(session: string) {
  const turns: Record<number, unknown[]> = {};
  const summaries: unknown[] = [];
  for (const { type, data } of await does.events(session)) {
    if (type === 'session.turn_started.v1')
      turns[data.turn] = [data.context_from_turn, data.context];
    if (type === 'session.turn_completed.v1')
      turns[data.turn]!.push(
        data.calls.map(({ request_sha256 }: any) => request_sha256.text as string),
      );
    if (type === 'session.compacted.v1')
      summaries.push([data.from_turn, data.up_to_turn, data.call.request_sha256.text]);
  }
  return { turns, summaries };
}

test.each([
  ['for what the origin asked it', false],
  ['for the summaries of older turns, too', true],
])(
  'a fork asks its model %s, request by request, also after a restart',
  async (_, compaction) => {
    const agent = await service.createAgent({ model: 'narrow', compaction });
    const origin = await does.run(agent, INPUTS);
    const expected = await recorded(origin);
    let summaries = 0;
    for (const at_turn of [2, 8]) {
      const { session_id } = await does.fork(origin, at_turn);
      const inputs = INPUTS.slice(at_turn);
      await does.run(agent, inputs.splice(0, 2), session_id);
      await service.restart();
      await does.run(agent, inputs, session_id);
      const found = await recorded(session_id);
      const later = Object.entries(expected.turns).filter(([turn]) => Number(turn) > at_turn);
      expect(found.turns).toEqual(Object.fromEntries(later));
      expect(expected.summaries).toEqual(expect.arrayContaining(found.summaries));
      summaries += found.summaries.length;
    }
    expect(summaries > 0).toBe(compaction);
  },
  60_000,
);
