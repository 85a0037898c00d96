import { afterAll, beforeAll, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { echo, forking } from '../../support/http/forking.ts';
import { closeRebuilt } from '../../support/http/rebuiltRequests.ts';
import { startTestService, type TestService } from '../../support/http/service.ts';
import { size } from '../../support/jest/size.ts';

let service: TestService;
let does: ReturnType<typeof forking>;
beforeAll(async () => {
  service = await startTestService(echo);
  does = forking(service);
});
afterAll(() => closeRebuilt(service));

/** A session is one of those there are, by its place among them; so is a turn of it. */
const step = fc.oneof(
  { arbitrary: fc.record({ does: fc.constant('run' as const), session: fc.nat(9) }), weight: 3 },
  {
    arbitrary: fc.record({
      does: fc.constant('fork' as const),
      session: fc.nat(9),
      turn: fc.nat(9),
      running: fc.boolean(),
    }),
    weight: 2,
  },
);

/** What a session ought to hold: its inputs, and who recorded each. */
interface Expected {
  id: string;
  turns: { input: string; by: string }[];
}

test('whatever is run and forked, a fork is the beginning of its origin and what came after', async () => {
  const steps = fc.array(step, { minLength: 6, maxLength: size({ small: 12, full: 40 }) });
  await fc.assert(
    fc.asyncProperty(steps, fc.integer({ min: 1, max: 4 }), async (taken, limit) => {
      const agent = await service.createAgent();
      const sessions: Expected[] = [];
      let inputs = 0;
      const run = async (session: Expected): Promise<void> => {
        const input = `input ${(inputs += 1)}`;
        await does.run(agent, [input], session.id);
        session.turns.push({ input, by: session.id });
      };
      const id = await does.run(agent, ['input 0']);
      sessions.push({ id, turns: [{ input: 'input 0', by: id }] });
      for (const one of taken) {
        const session = sessions[one.session % sessions.length]!;
        if (one.does === 'run') await run(session);
        else {
          const at = (one.turn % session.turns.length) + 1;
          const shared = session.turns.slice(0, at);
          // Its origin may go on meanwhile.
          const [forked] = await Promise.all([
            does.fork(session.id, at),
            ...(one.running ? [run(session)] : []),
          ]);
          expect(forked.forked_from).toMatchObject({ session_id: shared.at(-1)!.by, turn: at });
          sessions.push({ id: forked.session_id, turns: shared });
        }
      }
      for (const { id: session_id, turns } of sessions) {
        const seen: object[] = [];
        for (let after = 0; after < turns.length; after = seen.length) {
          const page = await does.read(session_id, `?after=${after}&limit=${limit}`);
          expect(page.turns.length).toBeGreaterThan(0);
          for (const { turn, input, output, origin_session_id = session_id } of page.turns)
            seen.push({ turn, input, output, by: origin_session_id });
        }
        expect(seen).toEqual(
          turns.map((turn, index) => ({
            turn: index + 1,
            output: `answer to ${turn.input}`,
            ...turn,
          })),
        );
        await run({ id: session_id, turns: [] });
        const { messages } = JSON.parse(service.model.bodies.at(-1)!);
        expect(
          messages
            .filter(({ role }: { role: string }) => role === 'user')
            .map(({ content }: { content: string }) => content),
        ).toEqual([...turns.map(({ input }) => input), `input ${inputs}`]);
      }
    }),
    { numRuns: size({ small: 6, full: 60 }), endOnFailure: true },
  );
}, 120_000);
