import fc from 'fast-check';

/** Whose agent or session a step names: the account's own n-th, the other account's, nobody's. */
export type Ref =
  { of: 'own' | 'other'; index: number } | { of: 'nobody' } | { of: 'text'; text: string };

/** One call of an account, before it is known which ids there will be. */
export type Step =
  | { does: 'create'; body: Record<string, unknown> }
  | { does: 'get agent'; agent: Ref }
  | { does: 'list agents'; limit: number | undefined; after: Ref | undefined; pretty: boolean }
  | { does: 'run'; agent: Ref; session: Ref | undefined; input: unknown }
  | {
      does: 'list sessions';
      limit: number | undefined;
      after: Ref | undefined;
      agent: Ref | undefined;
    }
  | {
      does: 'read';
      what: '' | '/events' | '/turns/1' | '/turns/2';
      session: Ref;
      limit: number | undefined;
      after: number | undefined;
    }
  | { does: 'cancel'; session: Ref; turn: number | undefined }
  | { does: 'erase'; what: 'agent' | 'session'; ref: Ref }
  | { does: 'look up'; path: string }
  | { does: 'send'; method: string; path: string; body: string; headers: Record<string, string> };

const index = fc.nat({ max: 3 });
const ref: fc.Arbitrary<Ref> = fc.oneof(
  { arbitrary: fc.record({ of: fc.constant('own' as const), index }), weight: 6 },
  { arbitrary: fc.record({ of: fc.constant('other' as const), index }), weight: 4 },
  { arbitrary: fc.constant({ of: 'nobody' as const }), weight: 1 },
  {
    arbitrary: fc
      .constantFrom('x', '%00', '__proto__', '')
      .map((text) => ({ of: 'text' as const, text })),
    weight: 1,
  },
);
const perhaps = <Value>(value: fc.Arbitrary<Value>): fc.Arbitrary<Value | undefined> =>
  fc.option(value, { nil: undefined });
const limit = perhaps(fc.constantFrom(1, 2, 3, 1_000, 0));

/** Answers depend on the input: `slow` takes a while, `fail` is a failure of the model. */
const input = fc.oneof(
  { arbitrary: fc.constantFrom<unknown>('hi', 'slow', 'use the tool', 'fail'), weight: 6 },
  { arbitrary: fc.constantFrom<unknown>('', 7, 'x'.repeat(600_000), undefined), weight: 1 },
);

const body = fc
  .record(
    {
      name: fc.constantFrom<unknown>('A', 'B', '', 3),
      instruction: fc.constantFrom<unknown>('Be brief.', 'Obey.'),
      model: fc.constantFrom<unknown>('scripted', 'narrow', 'unknown'),
      tool: fc.constantFrom<unknown>('calculator', 'unknown'),
      stranger: fc.constant<unknown>(1),
    },
    { requiredKeys: ['instruction'] },
  )
  .map((given) => ({ name: 'A', model: 'scripted', ...given }));
const simple = fc
  .constantFrom('A', 'B')
  .map((name) => ({ name, instruction: 'Be brief.', model: 'scripted' }));

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    arbitrary: fc.record({
      does: fc.constant('create' as const),
      body: fc.oneof(simple, simple, body),
    }),
    weight: 3,
  },
  { arbitrary: fc.record({ does: fc.constant('get agent' as const), agent: ref }), weight: 2 },
  {
    arbitrary: fc.record({
      does: fc.constant('list agents' as const),
      limit,
      after: perhaps(ref),
      pretty: fc.boolean(),
    }),
    weight: 2,
  },
  {
    arbitrary: fc.record({
      does: fc.constant('run' as const),
      agent: ref,
      session: perhaps(ref),
      input,
    }),
    weight: 6,
  },
  {
    arbitrary: fc.record({
      does: fc.constant('list sessions' as const),
      limit,
      after: perhaps(ref),
      agent: perhaps(ref),
    }),
    weight: 2,
  },
  {
    arbitrary: fc.record({
      does: fc.constant('read' as const),
      what: fc.constantFrom('', '/events', '/turns/1', '/turns/2'),
      session: ref,
      limit,
      after: perhaps(fc.nat({ max: 3 })),
    }),
    weight: 3,
  },
  {
    arbitrary: fc.record({
      does: fc.constant('cancel' as const),
      session: ref,
      turn: perhaps(fc.integer({ min: 1, max: 2 })),
    }),
    weight: 1,
  },
  {
    arbitrary: fc.record({
      does: fc.constant('erase' as const),
      what: fc.constantFrom('agent' as const, 'session' as const),
      ref,
    }),
    weight: 1,
  },
  {
    arbitrary: fc.record({
      does: fc.constant('look up' as const),
      path: fc.constantFrom('/v1/models', '/v1/tools', '/v1/nothing', '/v1/agents?limit=x'),
    }),
    weight: 1,
  },
  {
    arbitrary: fc.record({
      does: fc.constant('send' as const),
      method: fc.constantFrom('POST', 'PUT', 'DELETE'),
      path: fc.constantFrom('/v1/agents', '/v1/agents?x=1', '/v1/sessions'),
      body: fc.constantFrom('', '{', '[]', '{"name":"A"}'),
      headers: fc.constantFrom<Record<string, string>>({}, { 'content-type': 'text/plain' }),
    }),
    weight: 1,
  },
);

/** A step of one of two accounts. */
export interface Move {
  account: 0 | 1;
  step: Step;
}

/** Both begin with an agent and a session. */
export const beginnings: Move[] = ([0, 1] as const).flatMap((account): Move[] => [
  {
    account,
    step: {
      does: 'create',
      body: { name: `of ${account}`, instruction: 'Be brief.', model: 'scripted' },
    },
  },
  {
    account,
    step: { does: 'run', agent: { of: 'own', index: 0 }, session: undefined, input: `${account}` },
  },
]);

/** A slow run in a session of its own, or of the other account. */
export const running = (account: 0 | 1, of: 'own' | 'other'): Move => ({
  account,
  step: {
    does: 'run',
    agent: { of: 'own', index: 0 },
    session: { of, index: 0 },
    input: 'slow',
  },
});

/** What two accounts do, in this order or at the same time. */
export const play = fc
  .record({
    together: fc.boolean(),
    moves: fc.array(fc.record({ account: fc.constantFrom(0 as const, 1 as const), step }), {
      minLength: 8,
      maxLength: 24,
    }),
  })
  .map(({ together, moves }) => ({ together, moves: [...beginnings, ...moves] }));
