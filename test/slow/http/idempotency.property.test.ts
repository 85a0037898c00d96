import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { startTestService, type Reply, type TestService } from '../../support/http/service.ts';
import { size } from '../../support/jest/size.ts';

const PLAYS = size({ small: 25, full: 1_000 });

/** One request, sent by several clients at once, of which one may leave before it is answered. */
interface Move {
  operation: 'create' | 'run' | 'continue';
  key: number;
  text: string;
  clients: number;
  leavesAfterMs: number | null;
}

const move: fc.Arbitrary<Move> = fc.record({
  operation: fc.constantFrom('create', 'run', 'continue'),
  key: fc.nat(2),
  text: fc.constantFrom('one', 'another'),
  clients: fc.integer({ min: 1, max: 3 }),
  leavesAfterMs: fc.option(fc.integer({ min: 1, max: 12 })),
});

let service: TestService;
let agent: string;

beforeAll(async () => {
  service = await startTestService(({ messages }) => ({
    text: `re: ${messages.at(-1)!.content} ${randomUUID()}`,
    delay_ms: Math.random() * 8,
  }));
  agent = await service.createAgent();
});
afterAll(() => service.close());

function requestOf({ operation, text }: Move, session_id: string): [path: string, body: object] {
  if (operation === 'create')
    return ['/v1/agents', { name: text, instruction: 'x', model: 'scripted' }];
  const input = { input: text, ...(operation === 'continue' && { session_id }) };
  return [`/v1/agents/${agent}/run`, input];
}

async function sendAndLeave(path: string, body: object, key: string, ms: number): Promise<void> {
  const headers = {
    'x-api-key': service.key,
    'content-type': 'application/json',
    'idempotency-key': key,
  };
  const signal = AbortSignal.timeout(ms);
  await fetch(service.url + path, { method: 'POST', headers, body: JSON.stringify(body), signal })
    .then((response) => response.text())
    .catch(() => undefined);
}

test('whatever comes again, and whoever leaves, each key is one request with one answer', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(move, { maxLength: 10 }), async (moves) => {
      const begun = await service.post(`/v1/agents/${agent}/run`, { input: 'begin' });
      const { session_id } = begun.body.data;
      const calls = service.model.requests.length;
      const prefix = randomUUID();
      /** By key: what it stands for, and the answer. */
      const known = new Map<string, { text: string; answer: unknown }>();
      for (const each of moves) {
        const key = `${prefix}-${each.operation}-${each.key}`;
        const [path, body] = requestOf(each, session_id);
        const headers = { 'idempotency-key': `"${key}"` };
        const leaving = each.leavesAfterMs;
        const left = leaving === null ? undefined : sendAndLeave(path, body, key, leaving);
        const replies = await Promise.all(
          Array.from({ length: each.clients }, () => service.post(path, body, headers)),
        );
        await left;
        const before = known.get(key) ?? { text: each.text, answer: replies[0]!.body.data };
        known.set(key, before);
        const expected =
          before.text === each.text ? [200, undefined] : [409, 'idempotency_conflict'];
        expect(replies.map(({ status, body: { code } }: Reply) => [status, code])).toEqual(
          replies.map(() => expected),
        );
        if (before.text === each.text)
          for (const reply of replies) expect(reply.body.data).toEqual(before.answer);
      }
      const keysOf = (operation: string): number =>
        [...known.keys()].filter((key) => key.includes(`-${operation}-`)).length;
      const { turns } = (await service.get(`/v1/sessions/${session_id}`)).body.data;
      expect(turns).toHaveLength(1 + keysOf('continue'));
      expect(service.model.requests).toHaveLength(calls + keysOf('continue') + keysOf('run'));
    }),
    { numRuns: PLAYS },
  );
});
