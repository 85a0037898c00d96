import { randomUUID } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { eventSchemas, isErasure } from '../../../../../shared/eventlog/eventTypes.ts';
import { appendEvents, chainEvents, NO_STREAM } from '../../../../../shared/eventlog/append.ts';
import { canonicalJson } from '../../../../../shared/eventlog/canonicalJson.ts';
import { decodeEvent } from '../../../../../shared/eventlog/codec.ts';
import type { NewEvent, RecordedEvent } from '../../../../../shared/eventlog/event.ts';
import { findChainFault } from '../../../../../shared/eventlog/hashChain.ts';
import {
  formatEncryptedText,
  createTextOpener,
  TextErased,
} from '../../../../../shared/eventlog/encryption/encryptedText.ts';
import {
  discloseEvents,
  openEvents,
  decryptTextsInData,
} from '../../../../../shared/eventlog/encryption/openTexts.ts';
import { withoutBoxes } from '../../../../support/builders/chainStored.ts';
import { withCiphertexts } from '../../../../../shared/eventlog/encryption/ciphertexts.ts';
import { commitEventTexts } from '../../../../../shared/eventlog/encryption/sealTexts.ts';
import { planBatch } from '../../../../../shared/projections/plan.ts';
import type { Position, StoredEvent } from '../../../../../shared/ports/eventStore.ts';
import {
  accountOpened,
  agentCreated,
  keyIssued,
  limitsSet,
  modelCall,
  sessionStarted,
  toolCalled,
  turnCompleted,
  turnFailed,
  turnInterrupted,
  turnStarted,
} from '../../../../support/builders/events.ts';
import { positionOf } from '../../../../support/builders/history.ts';
import { memoryKeys } from '../../../../support/fakes/memoryKeys.ts';
import { turnsDuring } from '../../../../support/fakes/loopTurns.ts';
import { AUTHORSHIP } from '../../../../support/builders/authorship.ts';

const STREAM = 'session-1';
interface Shape {
  type: string;
  data: object;
}

const kept = (events: readonly NewEvent[]): StoredEvent[] =>
  chainEvents(STREAM, NO_STREAM, events, AUTHORSHIP).encoded.map((event, revision) => ({
    ...withCiphertexts(event, STREAM),
    stream: STREAM,
    revision,
    position: positionOf(revision + 1),
  }));

/** Events as a store has them, in one stream. */
async function stored(
  keys: ReturnType<typeof memoryKeys>['keys'],
  events: readonly Shape[],
): Promise<StoredEvent[]> {
  const decided = events.map((event) => ({ id: randomUUID(), ...event }));
  return kept((await commitEventTexts(keys, undefined, decided)).events);
}

function firstFault(events: readonly RecordedEvent[]): number {
  let previous: { revision: number; hash: string } | undefined;
  for (const [index, event] of events.entries()) {
    if (findChainFault(event, previous) !== undefined) return index;
    previous = { revision: event.revision, hash: event.metadata.hash };
  }
  return -1;
}

const SECRET = 'what nobody else is to know';
/** One of each kind of event that has texts, with the secret in each of them. */
const TOLD = [
  accountOpened(SECRET),
  keyIssued('key_1', { name: SECRET }),
  agentCreated({ name: SECRET, instruction: SECRET }),
  sessionStarted(),
  turnStarted(1, { input: SECRET }),
  toolCalled(1, { arguments: SECRET, content: SECRET, result: SECRET }),
  turnCompleted(1, { output: SECRET, calls: [{ ...modelCall, request_sha256: SECRET }] }),
  turnFailed(2, { message: SECRET, calls: [{ ...modelCall, request_sha256: SECRET }] }),
  turnInterrupted(3),
  limitsSet({ runs: 1 }),
];

describe('the texts of events', () => {
  test('are stored nowhere, and had back whole', async () => {
    const { keys, open } = memoryKeys();
    const events = await stored(keys, TOLD);
    expect(JSON.stringify(events)).not.toContain(SECRET);
    expect(JSON.stringify(events)).not.toContain(Buffer.from(SECRET).toString('base64url'));
    // As another process has them.
    const opened = await openEvents(open(), events);
    expect(opened.map(({ type, data }) => ({ type, data }))).toEqual(TOLD);
    expect(opened.every(({ erased }) => !erased)).toBe(true);
  });

  test('of a large batch leave the event loop to others while they are decrypted', async () => {
    const { keys } = memoryKeys();
    const events = await stored(keys, Array.from({ length: 50 }, () => TOLD).flat());
    let opened: string[] = [];
    const turns = await turnsDuring(async () => {
      opened = (await decryptTextsInData(keys, events)).map(({ id }) => id);
    });
    expect(opened).toEqual(events.map(({ id }) => id));
    expect(turns).toBeGreaterThan(50);
  });

  test('have one key a stream, which each event that has texts tells', async () => {
    const { keys } = memoryKeys();
    const decided = TOLD.map((event) => ({ id: randomUUID(), ...event }));
    const { key, events } = await commitEventTexts(keys, undefined, decided);
    const told = await openEvents(keys, kept(events));
    const withTexts = told.filter(({ type }) => !/interrupted|limits|session.started/.test(type));
    expect(new Set(withTexts.map((event) => event.key?.id))).toEqual(new Set([key!.id]));
    expect((await commitEventTexts(keys, key, decided)).key).toBe(key);
  });

  test('do not open in another stream, whoever put them there', async () => {
    const { keys } = memoryKeys();
    const [own] = await stored(keys, [turnStarted(1, { input: SECRET })]);
    expect((await openEvents(keys, [own!])).length).toBe(1);
    const moved = { ...own!, stream: 'session-session_2' };
    await expect(openEvents(keys, [moved])).rejects.toMatchObject({ code: 'event_invalid' });
    await expect(discloseEvents(keys, [moved])).rejects.toMatchObject({ code: 'event_invalid' });
  });

  test('take no key where there are none', async () => {
    const { keys, kept: store } = memoryKeys();
    const sealed = await commitEventTexts(keys, undefined, [{ id: 'x', ...turnInterrupted(1) }]);
    expect([sealed.key, store.size]).toEqual([undefined, 0]);
  });

  test('are closed with another salt each time', async () => {
    const { keys } = memoryKeys();
    const [one, other] = await stored(keys, [turnStarted(1), turnStarted(1)]);
    expect(withoutBoxes(one!.data)).not.toBe(withoutBoxes(other!.data));
  });

  test('that have half of a character are refused, as any JSON with one is', async () => {
    const { keys } = memoryKeys();
    await expect(stored(keys, [turnStarted(1, { input: 'x\ud800' })])).rejects.toThrow(TypeError);
  });

  test.each([
    ['a commitment', { sha256: 'ab'.repeat(32) }],
    ['a box', { sha256: 'ab'.repeat(32), box: 'x' }],
    ['a disclosed text', { sha256: 'ab'.repeat(32), salt: '', text: 'x' }],
    ['an erased text', { sha256: 'ab'.repeat(32), erased: true }],
  ])('are mimicked by no other data: %s is refused', async (_what, parameters) => {
    const { keys } = memoryKeys();
    const tool = {
      type: 'function' as const,
      function: { name: 'f', description: '', parameters: { properties: [parameters] } },
    };
    const event = turnStarted(1, { settings: { model: 'm', tools: [tool] } });
    await expect(stored(keys, [event])).rejects.toMatchObject({ code: 'event_invalid' });
  });

  test('that look like protected ones stay what they are', async () => {
    const { keys } = memoryKeys();
    const input = `{"box":"0123456789abcdef.AAAA","sha256":"${'ab'.repeat(32)}"}`;
    const events = await stored(keys, [
      turnStarted(1, { input }),
      turnStarted(2, { input: 'box' }),
    ]);
    const plain = kept([{ id: 'x', ...turnStarted(1, { input }) }]);
    expect(
      (await openEvents(keys, [...events, ...plain])).map(({ data }: any) => data.input),
    ).toEqual([input, 'box', input]);
    expect(withoutBoxes(plain[0]!.data)).toBe(plain[0]!.data);
  });

  test('of before stand as they were recorded', async () => {
    const { keys } = memoryKeys();
    const plain = kept(TOLD.map((event) => ({ id: randomUUID(), ...event })));
    expect((await openEvents(keys, plain)).map(({ data }) => data)).toEqual(
      TOLD.map(({ data }) => data),
    );
    expect(await decryptTextsInData(keys, plain)).toEqual(plain);
    expect(await discloseEvents(keys, plain)).toEqual(plain.map(decodeEvent));
  });

  test('are found in JSON that a store has written anew', async () => {
    const { keys } = memoryKeys();
    const [event] = await stored(keys, [turnStarted(1, { input: SECRET })]);
    const { input, ...data } = JSON.parse(event!.data);
    const anew = { input: { sha256: input.sha256, box: input.box }, ...data };
    const written = { ...event!, data: JSON.stringify(anew, undefined, 2) };
    const [opened] = await openEvents(keys, [written]);
    expect((opened!.data as typeof data).input).toBe(SECRET);
    expect(findChainFault(decodeEvent(written), undefined)).toBeUndefined();
  });
});

test.each([
  ['no JSON', '{"box"'],
  [
    'no JSON behind a box',
    `{"input":{"box":"0123456789abcdef.AAAA","sha256":"${'ab'.repeat(32)}"},"box"`,
  ],
  ['JSON that is too deep', `{"box":${'['.repeat(50_000)}${']'.repeat(50_000)}}`],
])('an event of others that is %s is left to who decodes it', async (_what, data) => {
  const { keys } = memoryKeys();
  const [event] = kept([{ id: 'x', ...turnInterrupted(1) }]);
  const events = [{ ...event!, data }, event!];
  for (const staysClosed of [true, false]) {
    const found = await decryptTextsInData(keys, events, { staysClosed: () => staysClosed });
    expect(found).toHaveLength(2);
    expect(found[1]).toEqual(event);
    expect(planBatch(found).map(({ error }) => error !== undefined)).toEqual([true, false]);
  }
});

describe('a key', () => {
  const texts = [turnStarted(1, { input: SECRET }), turnCompleted(1, { output: SECRET })];

  test('that was destroyed leaves empty texts and a chain that verifies', async () => {
    const { keys, kept: store, open } = memoryKeys();
    const events = await stored(keys, texts);
    for (const id of store.keys()) store.set(id, 'destroyed');
    const opened = await openEvents(open(), events);
    expect(opened.map(({ erased, data }: any) => [erased, data.input ?? data.output])).toEqual([
      [true, ''],
      [true, ''],
    ]);
    const disclosed = await discloseEvents(open(), events);
    expect((disclosed[0]!.data as any).input).toEqual({ sha256: expect.any(String), erased: true });
    expect([firstFault(events.map(decodeEvent)), firstFault(disclosed)]).toEqual([-1, -1]);
  });

  test('that was forgotten is in no memory, also where it was looked for meanwhile', async () => {
    const { keys, kept: store } = memoryKeys();
    const events = await stored(keys, texts);
    const [id] = [...store.keys()].filter((key) => events[0]!.data.includes(key));
    keys.evict(events[0]!.stream, [id!]);
    expect((await openEvents(keys, events)).map(({ erased }) => erased)).toEqual([true, true]);
  });

  test('that others destroyed is in no memory once everything was forgotten', async () => {
    const { keys, kept: store } = memoryKeys();
    const events = await stored(keys, texts);
    await openEvents(keys, events);
    for (const id of store.keys()) store.set(id, 'destroyed');
    keys.evictAll();
    expect((await openEvents(keys, events)).map(({ erased }) => erased)).toEqual([true, true]);
  });

  test('that was lost is missing, and said so; other streams are read', async () => {
    const { keys, kept: store, open } = memoryKeys();
    const events = await stored(keys, texts);
    const others = await stored(keys, [turnStarted(1)]);
    const used = [...store.keys()].filter((id) => events[0]!.data.includes(id));
    used.forEach((id) => store.delete(id));
    await expect(openEvents(open(), events)).rejects.toMatchObject({ code: 'key_missing' });
    await expect(discloseEvents(open(), events)).rejects.toMatchObject({ code: 'key_missing' });
    const found = await decryptTextsInData(open(), [...events, ...others]);
    expect(found.map(({ unreadable }) => unreadable?.code)).toEqual([
      'key_missing',
      'key_missing',
      undefined,
    ]);
  });
});

describe('a box', () => {
  const changed = (event: StoredEvent, change: (input: any) => object): StoredEvent => {
    const data = JSON.parse(event.data);
    return { ...event, data: canonicalJson({ ...data, input: change(data.input) }) };
  };

  test.each<[string, (input: any) => object]>([
    ['with a changed byte', ({ sha256, box }) => ({ sha256, box: `${box.slice(0, -3)}AAA` })],
    ['that was cut', ({ sha256, box }) => ({ sha256, box: box.slice(0, 30) })],
    ['that was taken out', ({ sha256 }) => ({ sha256 })],
    ['that is none', ({ sha256 }) => ({ sha256, box: 'none' })],
    ['in whose place a mark says that it was erased', ({ sha256 }) => ({ sha256, erased: true })],
    ['in whose place is another text', ({ sha256 }) => ({ sha256, erased: 'I agreed.' })],
  ])('%s is found, and every chain holds', async (_what, change) => {
    const { keys } = memoryKeys();
    const [event] = await stored(keys, [turnStarted(1)]);
    await expectFound(keys, changed(event!, change));
  });

  /** By readers of texts and by those who disclose them; the hash chain cannot tell. */
  async function expectFound(keys: ReturnType<typeof memoryKeys>['keys'], event: StoredEvent) {
    expect(firstFault([decodeEvent(event)])).toBe(-1);
    for (const read of [openEvents, discloseEvents])
      await expect(read(keys, [event])).rejects.toMatchObject({ code: 'event_invalid' });
    expect(await decryptTextsInData(keys, [event])).toEqual([
      { ...event, unreadable: expect.objectContaining({ code: 'event_invalid' }) },
    ]);
  }

  test('in whose place is the text itself is found, also once it is erased', async () => {
    const { keys, kept: store, open } = memoryKeys();
    const [event] = await stored(keys, [turnStarted(1, { input: SECRET })]);
    const [disclosed] = await discloseEvents(keys, [event!]);
    const clear = changed(event!, () => (disclosed!.data as any).input);
    await expectFound(keys, clear);
    for (const id of store.keys()) store.set(id, 'destroyed');
    await expectFound(open(), clear);
  });

  test.each([
    ['blanks', ' "sha256" : '],
    ['an escape', '"sh\\u0061256":'],
  ])('that was taken out is found behind %s', async (_what, name) => {
    const { keys } = memoryKeys();
    const [event] = await stored(keys, [turnStarted(1)]);
    const data = event!.data.replace(/"box":"[^"]*","sha256":/, name);
    await expectFound(keys, { ...event!, data });
  });

  test('that was exchanged with another one is found', async () => {
    const { keys } = memoryKeys();
    const [one, two] = await stored(keys, [turnStarted(1), turnStarted(2)]);
    const { box } = JSON.parse(two!.data).input;
    const swapped = changed(one!, ({ sha256 }) => ({ sha256, box }));
    await expect(openEvents(keys, [swapped])).rejects.toThrow('another text');
  });
});

describe('disclosed events', () => {
  test('verify, and a changed text or salt does not', async () => {
    const { keys } = memoryKeys();
    const disclosed = await discloseEvents(keys, await stored(keys, TOLD));
    expect(firstFault(disclosed)).toBe(-1);
    const at = TOLD.findIndex(({ type }) => type === 'session.turn_started.v1');
    for (const [name, value] of Object.entries({ text: 'x', salt: 'A'.repeat(22) })) {
      const changed = structuredClone(disclosed);
      (changed[at]!.data as any).input[name] = value;
      expect(firstFault(changed)).toBe(at);
    }
  });
});

/** Data of any kind that a schema allows. */
function dataOf(schema: any): fc.Arbitrary<unknown> {
  if (schema.enum) return fc.constantFrom(...schema.enum);
  if (schema.const !== undefined) return fc.constant(schema.const);
  if (schema.anyOf) return fc.oneof(...schema.anyOf.map(dataOf));
  switch (schema.type) {
    case 'string':
      return schema.pattern
        ? fc.constant('2026-11-20T10:00:00.000Z')
        : fc.string({ unit: 'grapheme' });
    case 'integer':
      return fc.integer({ min: schema.minimum ?? 0 });
    case 'boolean':
      return fc.boolean();
    case 'null':
      return fc.constant(null);
    case 'array':
      return fc.array(dataOf(schema.items), { minLength: schema.minItems ?? 0, maxLength: 3 });
    default: {
      const members = Object.entries(schema.properties ?? {}).map(([name, of]) => [
        name,
        dataOf(of),
      ]);
      return fc.record(Object.fromEntries(members), { requiredKeys: schema.required ?? [] });
    }
  }
}

/** Erasures have no texts, and those of their stream are not opened. */
const anyEvent = fc.oneof(
  ...eventSchemas
    .filter(({ properties: { type } }) => !isErasure(type.const as string))
    .map(({ properties: { type, data } }) =>
      fc.record({
        type: fc.constant(type.const as string),
        data: dataOf(data) as fc.Arbitrary<object>,
      }),
    ),
);

test('any events are the same once sealed, stored and opened; their chain holds with and without boxes, and no change of it passes', async () => {
  const { keys, open } = memoryKeys();
  await fc.assert(
    fc.asyncProperty(
      fc.array(anyEvent, { minLength: 1, maxLength: 5 }),
      fc.nat(),
      fc.nat(),
      async (shapes, which, where) => {
        const events = await stored(keys, shapes);
        const opened = await openEvents(open(), events);
        expect(opened.map(({ type, data }) => ({ type, data }))).toEqual(
          shapes.map(({ type, data }) => ({ type, data: { ...data } })),
        );
        const bare = events.map((event) => ({ ...event, data: withoutBoxes(event.data) }));
        expect(firstFault(events.map(decodeEvent))).toBe(-1);
        expect(firstFault(bare.map(decodeEvent))).toBe(-1);
        expect(firstFault(await discloseEvents(keys, events))).toBe(-1);
        // One character of what the hash covers.
        const at = which % bare.length;
        const text = bare[at]!.data;
        const place = where % text.length;
        const other = `${text.slice(0, place)}${text[place] === '7' ? '8' : '7'}${text.slice(place + 1)}`;
        const changed = { ...bare[at]!, data: other };
        // What can't be decoded any more is found as well.
        const faultOf = (): string | undefined => {
          const recorded = decodeEvent(changed);
          const prev_hash = recorded.metadata.prev_hash;
          const before = at === 0 ? undefined : { revision: at - 1, hash: prev_hash };
          return findChainFault(recorded, before);
        };
        let found: unknown;
        try {
          found = faultOf();
        } catch (error) {
          found = error;
        }
        expect(found).toBeDefined();
      },
    ),
    { numRuns: 100 },
  );
});

test('an append that is tried again has the same bytes', async () => {
  const { keys } = memoryKeys();
  const { events } = await commitEventTexts(keys, undefined, [{ id: 'x', ...turnStarted(1) }]);
  const appended: string[] = [];
  const store = {
    append: async (_stream: string, _at: unknown, encoded: readonly object[]) => {
      appended.push(JSON.stringify(encoded));
      return { revision: 0, position: '1' as Position };
    },
  };
  for (let tries = 0; tries < 2; tries += 1)
    await appendEvents(
      store,
      { stream: STREAM, head: NO_STREAM },
      { events, authorship: AUTHORSHIP },
    );
  expect(appended[0]).toBe(appended[1]);
});

describe('a text of an erased stream whose key exists', () => {
  const erasedLog = { readStream: async () => [{ type: 'session.erased.v1' }] as StoredEvent[] };
  const texts = [turnStarted(1, { input: SECRET }), turnCompleted(1, { output: SECRET })];

  test('is opened for no reader of events or rows', async () => {
    const { keys } = memoryKeys(erasedLog);
    const events = await stored(keys, texts);
    const opened = await openEvents(keys, events);
    expect(opened.map(({ erased }) => erased)).toEqual([true, true]);
    expect(JSON.stringify([opened, await discloseEvents(keys, events)])).not.toContain(SECRET);
    const { box, sha256 } = JSON.parse(events[0]!.data).input;
    const row = formatEncryptedText(box, sha256);
    const open = await createTextOpener(keys, events[0]!.stream, [row]);
    expect(() => open(row)).toThrow(TextErased);
  });

  test('is closed from the moment at which the erasure is known, and other keys that it names stay', async () => {
    const { keys } = memoryKeys();
    const events = await stored(keys, texts);
    expect((await openEvents(keys, events)).map(({ erased }) => erased)).toEqual([false, false]);
    const victim = await keys.issueKey();
    keys.evict(events[0]!.stream, [victim.id]);
    expect((await openEvents(keys, events)).map(({ erased }) => erased)).toEqual([true, true]);
    expect((await keys.find(new Set([victim.id]))).get(victim.id)).toEqual(victim);
  });

  test('is closed once everything was forgotten because its erasure is not known, also where its end is being read', async () => {
    let erased = false;
    const begun = Promise.withResolvers<void>();
    const reading = Promise.withResolvers<void>();
    const log = {
      readStream: async () => {
        const found = erased ? await erasedLog.readStream() : [];
        begun.resolve();
        await reading.promise;
        return found;
      },
    };
    const { keys } = memoryKeys(log);
    const events = await stored(keys, texts);
    const early = openEvents(keys, events);
    await begun.promise;
    keys.evictAll();
    erased = true;
    reading.resolve();
    await early;
    const opened = await openEvents(keys, events);
    expect(opened.map((event) => event.erased)).toEqual([true, true]);
  });

  test('costs no read where the newest page of the stream was read', async () => {
    let reads = 0;
    const log = { readStream: async () => ((reads += 1), []) };
    const { keys } = memoryKeys(log);
    const events = await stored(keys, texts);
    keys.noteLastEvent(events[0]!.stream, 'session.turn_completed.v1');
    await openEvents(keys, events);
    expect(reads).toBe(0);
  });
});

test('a member named __proto__ is recorded', async () => {
  const { keys } = memoryKeys();
  const data = JSON.parse('{"__proto__":{"b":1},"a":[{"__proto__":2}]}') as object;
  const { events } = await commitEventTexts(keys, undefined, [
    { id: randomUUID(), type: 'test.happened.v1', data },
  ]);
  expect(JSON.stringify(events[0]!.data)).toBe('{"__proto__":{"b":1},"a":[{"__proto__":2}]}');
});
