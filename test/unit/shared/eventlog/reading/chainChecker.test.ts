import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { canonicalJson } from '../../../../../shared/eventlog/canonicalJson.ts';
import { createChainChecker } from '../../../../../shared/eventlog/reading/chainChecker.ts';
import { eventHash, GENESIS_HASH } from '../../../../../shared/eventlog/hashChain.ts';
import type { Position, StoredEvent } from '../../../../../shared/ports/eventStore.ts';
import { size } from '../../../../support/jest/size.ts';
import { memoryReads } from '../../../../support/fakes/memoryReads.ts';
import { sessionErased, sessionStarted, turnStarted } from '../../../../support/builders/events.ts';
import { recordHistory } from '../../../../support/builders/history.ts';
import { randomHistory } from '../../../../support/builders/randomHistory.ts';
import { AUTHORSHIP } from '../../../../support/builders/authorship.ts';

/** The index of the first event that does not fit, and why. */
async function firstFault(log: readonly StoredEvent[]) {
  const { check: faultOf } = createChainChecker(memoryReads(log));
  for (const [index, event] of log.entries()) {
    const reason = await faultOf(event);
    if (reason !== undefined) return { index, reason };
  }
  return undefined;
}

type Container = Record<string, unknown>;

/** Every object and array within a value, itself included. */
const containersIn = (value: unknown): Container[] =>
  typeof value === 'object' && value !== null
    ? [value as Container, ...Object.values(value).flatMap(containersIn)]
    : [];

const differs = (value: unknown, other: unknown): boolean =>
  JSON.stringify(value) !== JSON.stringify(other);

interface Change {
  kind: 'replace' | 'add' | 'remove';
  where: number;
  name: string;
  value: unknown;
}

/** The JSON text after one change somewhere in it; undefined where it changes nothing. */
function changed(json: string, { kind, where, name, value }: Change): string | undefined {
  const root = JSON.parse(json) as unknown;
  const holders = containersIn(root);
  const holder = holders[where % holders.length]!;
  const members = Object.keys(holder);
  const member =
    kind === 'add' ? name : members[Math.floor(where / holders.length) % members.length];
  if (member === undefined || (kind === 'add' && Array.isArray(holder))) return undefined;
  if (kind !== 'remove')
    Object.defineProperty(holder, member, { value, enumerable: true, configurable: true });
  else if (Array.isArray(holder)) holder.splice(Number(member), 1);
  else delete holder[member];
  const text = JSON.stringify(root);
  return differs(JSON.parse(json), JSON.parse(text)) ? text : undefined;
}

const change: fc.Arbitrary<Change> = fc.record({
  kind: fc.constantFrom('replace', 'add', 'remove'),
  where: fc.nat(1_000),
  name: fc.oneof(fc.string(), fc.constantFrom('__proto__', 'key_id', 'tenant', 'toJSON')),
  value: fc.jsonValue({ stringUnit: 'grapheme' }),
});

const column = fc.constantFrom('id', 'stream', 'revision', 'type', 'data', 'metadata');

/** The event after one change of one of its columns; undefined where that changes nothing. */
function tampered(
  event: StoredEvent,
  name: 'id' | 'stream' | 'revision' | 'type' | 'data' | 'metadata',
  { one, text, to }: { one: Change; text: string; to: number },
): StoredEvent | undefined {
  if (name === 'data' || name === 'metadata') {
    const json = changed(event[name], one);
    return json === undefined ? undefined : { ...event, [name]: json };
  }
  const value = name === 'revision' ? to : text;
  return event[name] === value ? undefined : { ...event, [name]: value };
}

test('every event of any log fits its chain', () =>
  fc.assert(
    fc.asyncProperty(randomHistory(''), async (log) => {
      expect(await firstFault(log)).toBeUndefined();
    }),
  ));

/** The same value in another order, with white space. */
const writtenAnew = (json: string): string =>
  JSON.stringify(
    Object.fromEntries(Object.entries(JSON.parse(json) as Container).toReversed()),
    null,
    2,
  );

test('events fit although their store writes the same JSON in another way', () =>
  fc.assert(
    fc.asyncProperty(randomHistory(''), async (log) => {
      const anew = log.map((event) => ({
        ...event,
        data: writtenAnew(event.data),
        metadata: writtenAnew(event.metadata),
      }));
      expect(await firstFault(anew)).toBeUndefined();
    }),
  ));

test('one change of anything in any event of any log is found, and that event is named', () =>
  fc.assert(
    fc.asyncProperty(
      randomHistory('').filter((log) => log.length > 0),
      fc.nat(1_000),
      column,
      fc.record({
        one: change,
        text: fc.oneof(fc.string(), fc.constantFrom('session-session_1', 'agent-agent_1')),
        to: fc.nat(9),
      }),
      async (log, pick, name, how) => {
        const index = pick % log.length;
        const event = tampered(log[index]!, name, how);
        fc.pre(event !== undefined);
        expect(await firstFault(log.with(index, event))).toMatchObject({ index });
      },
    ),
    { numRuns: size({ small: 200, full: 5_000 }) },
  ));

const METADATA = ['account_id', 'key_id', 'request_id', 'causation_id', 'recorded_at'];

test.each([...METADATA, 'prev_hash', 'hash'])(
  'an event whose %s was changed, or taken away, does not fit',
  async (member) => {
    const [log] = fc.sample(
      randomHistory('').filter(({ length }) => length > 3),
      { numRuns: 1, seed: 11 },
    );
    const event = log![2]!;
    const metadata = JSON.parse(event.metadata) as Record<string, string>;
    const { [member]: was, ...without } = metadata;
    expect(was).toEqual(expect.any(String));
    for (const other of [{ ...metadata, [member]: `${was}0` }, without])
      expect(
        await firstFault(log!.with(2, { ...event, metadata: JSON.stringify(other) })),
      ).toMatchObject({ index: 2 });
  },
);

test('an event that was given one more member does not fit', async () => {
  const [log] = fc.sample(
    randomHistory('').filter(({ length }) => length > 3),
    { numRuns: 1, seed: 11 },
  );
  const event = log![2]!;
  const metadata = JSON.stringify({ ...JSON.parse(event.metadata), approved_by: 'key_2' });
  expect(await firstFault(log!.with(2, { ...event, metadata }))).toEqual({
    index: 2,
    reason: 'its hash does not match its content',
  });
});

describe('an event whose hash covers its text as it stands there, and not its canonical form, does not fit', () => {
  test.each([
    ['a name twice', '{"a":1,"a":2}'],
    ['members out of order', '{"b":1,"a":2}'],
    ['a blank', '{"a": 1}'],
    ['a text that is erased', `{"a":{"erased":true,"sha256":"${'0'.repeat(64)}"}}`],
  ])('%s', async (_what, data) => {
    const prev_hash = GENESIS_HASH;
    const event = { id: 'id', stream: 'test-1', revision: 0, type: 't.v1', data };
    const hash = eventHash(prev_hash, { ...event, metadata: canonicalJson(AUTHORSHIP) });
    const metadata = JSON.stringify({ ...AUTHORSHIP, prev_hash, hash });
    const stored = { ...event, metadata, position: '1' as Position };
    const reason = 'its hash does not match its content';
    expect(await firstFault([stored])).toEqual({ index: 0, reason });
  });
});

test('an event after the erasure of its stream does not fit, although its chain does', async () => {
  const { record } = recordHistory();
  const log = [sessionStarted(), sessionErased(), turnStarted(1)].map((event) =>
    record({ stream: 'session-1' }, event),
  );
  expect(await firstFault(log)).toEqual({
    index: 2,
    reason: 'it follows the erasure of its stream',
  });
});
