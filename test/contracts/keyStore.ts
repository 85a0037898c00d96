import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { KeyStore, WrappedKey } from '../../shared/ports/keyStore.ts';
import { size } from '../support/jest/size.ts';

interface KeyStoreFixture {
  /** Opens the same store as another process would. */
  open(): Promise<KeyStore>;
  dispose(): Promise<void>;
}

const MASTERS = ['master-key---one', 'master-key---two'] as const;

const wrapped = (): Uint8Array => randomBytes(60);
const keyOf = (key_id: string, master_key_id: string = MASTERS[0]): WrappedKey => ({
  key_id,
  master_key_id,
  wrapped: wrapped(),
});
/** Ids whose order differs where a store minds languages or case. */
const IDS = ['A', 'Z', 'a', 'b', 'z', '_', '-', '0', '9', 'aB'].map((end) => end.padStart(16, 'k'));
const newKeys = (count: number): WrappedKey[] =>
  Array.from({ length: count }, () => keyOf(randomBytes(12).toString('base64url')));
const idsOf = (keys: readonly WrappedKey[]): string[] => keys.map(({ key_id }) => key_id);

/** Comparable: a driver may answer with a Buffer. */
const plain = ({ key_id, master_key_id, wrapped: bytes }: WrappedKey) => ({
  key_id,
  master_key_id,
  wrapped: Buffer.from(bytes).toString('hex'),
});

/** What happens to keys, in words of the port. */
type Step =
  | { do: 'insert' | 'rewrap'; keys: readonly string[]; by: number }
  | { do: 'begin'; stream: string }
  | { do: 'end'; stream: string; keys: readonly string[] };

const someIds = fc.uniqueArray(fc.constantFrom(...IDS), { maxLength: 4 });
const aStream = fc.constantFrom('session-1', 'session-2', 'agent-1');
const aStep: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    do: fc.constantFrom('insert' as const, 'rewrap' as const),
    keys: someIds,
    by: fc.constantFrom(0, 1),
  }),
  fc.record({ do: fc.constant('begin' as const), stream: aStream }),
  fc.record({ do: fc.constant('end' as const), stream: aStream, keys: someIds }),
);

/** The simplest key store: what each adapter is compared with. */
interface Model {
  keys: Map<string, WrappedKey | 'destroyed'>;
  notes: Set<string>;
}

/** Does a step with both; each says what it came to. */
async function take(step: Step, store: KeyStore, { keys, notes }: Model): Promise<void> {
  if (step.do === 'begin') {
    await store.beginErasure(step.stream, 'why');
    notes.add(step.stream);
  } else if (step.do === 'end') {
    await store.endErasure(step.stream, step.keys);
    for (const id of step.keys) keys.set(id, 'destroyed');
    notes.delete(step.stream);
  } else {
    const given = step.keys.map((id) => keyOf(id, MASTERS[step.by]));
    if (step.do === 'rewrap') {
      await store.rewrap(given);
      const there = given.filter(({ key_id }) => typeof keys.get(key_id) === 'object');
      for (const key of there) keys.set(key.key_id, key);
    } else {
      const taken = given.some(({ key_id }) => keys.has(key_id));
      const answer = await store.insert(given).then(
        () => 'kept',
        ({ code }: { code: string }) => code,
      );
      expect(answer).toBe(taken ? 'store_unavailable' : 'kept');
      if (!taken) for (const key of given) keys.set(key.key_id, key);
    }
  }
}

async function expectSame(store: KeyStore, { keys, notes }: Model): Promise<void> {
  const kept = [...keys.values()].filter((key) => key !== 'destroyed');
  const inOrder = kept.toSorted((a, b) => (a.key_id < b.key_id ? -1 : 1));
  expect((await store.list({ limit: 1_000 })).map(plain)).toEqual(inOrder.map(plain));
  const found = await store.find([...IDS, 'never-was-a-key-']);
  expect(
    new Map([...found].map(([id, key]) => [id, key === 'destroyed' ? key : plain(key)])),
  ).toEqual(new Map([...keys].map(([id, key]) => [id, key === 'destroyed' ? key : plain(key)])));
  expect(new Set((await store.listErasures(1_000)).map(({ stream }) => stream))).toEqual(notes);
  const counts = Map.groupBy(keys.values(), (key) =>
    key === 'destroyed' ? key : key.master_key_id,
  );
  expect(await store.count()).toEqual(new Map([...counts].map(([id, { length }]) => [id, length])));
}

/** The suite that every adapter of the key store port passes. */
export function keyStoreContract(name: string, create: () => Promise<KeyStoreFixture>): void {
  let fixture: KeyStoreFixture;
  let here: KeyStore;
  let there: KeyStore;

  beforeEach(async () => {
    fixture = await create();
    [here, there] = [await fixture.open(), await fixture.open()];
  });
  afterEach(async () => {
    await here.close();
    await there.close();
    await fixture.dispose();
  });

  const find = async (id: string) => (await there.find([id])).get(id);

  describe(`${name}: keys of texts`, () => {
    test('a key that was kept is found by another process, and one that was not is absent', async () => {
      const [first, second] = newKeys(2);
      await here.insert([first!, second!]);
      const found = await there.find([second!.key_id, 'never-was-a-key-', first!.key_id]);
      expect(found.size).toBe(2);
      expect(plain(found.get(first!.key_id) as WrappedKey)).toEqual(plain(first!));
      expect(plain(found.get(second!.key_id) as WrappedKey)).toEqual(plain(second!));
      expect(await there.find([])).toEqual(new Map());
    });

    test('keys are listed in the order of their ids as bytes, page by page, without the destroyed ones', async () => {
      await here.insert(IDS.map((id) => keyOf(id)));
      await here.endErasure('session-1', [IDS[2]!]);
      const expected = IDS.toSorted((a, b) => (a < b ? -1 : 1)).filter((id) => id !== IDS[2]);
      const listed: string[] = [];
      for (let after: string | undefined; ; after = listed.at(-1)) {
        const page = await there.list({ limit: 4, ...(after !== undefined && { after }) });
        listed.push(...idsOf(page));
        if (page.length < 4) break;
      }
      expect(listed).toEqual(expected);
    });

    test('an id that is taken is refused, with all keys that come with it, and what is kept stays', async () => {
      const kept = keyOf(IDS[0]!);
      await here.insert([kept]);
      const refusal = { code: 'store_unavailable', retriable: true };
      await expect(there.insert([keyOf(IDS[1]!), keyOf(IDS[0]!)])).rejects.toMatchObject(refusal);
      expect(plain((await find(IDS[0]!)) as WrappedKey)).toEqual(plain(kept));
      expect(await find(IDS[1]!)).toBeUndefined();
    });

    test("of two processes that keep one id at once, one is refused and the other one's key is kept", async () => {
      const keys = [keyOf(IDS[0]!), keyOf(IDS[0]!)];
      const answers = await Promise.allSettled([here.insert([keys[0]!]), there.insert([keys[1]!])]);
      const won = answers.findIndex(({ status }) => status === 'fulfilled');
      expect(answers.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
      expect(plain((await find(IDS[0]!)) as WrappedKey)).toEqual(plain(keys[won]!));
    });

    test('a destroyed key is known as such, is not wrapped anew, and its id stays taken', async () => {
      await here.insert([keyOf(IDS[0]!)]);
      await here.endErasure('session-1', [IDS[0]!]);
      expect(await find(IDS[0]!)).toBe('destroyed');
      await there.rewrap([keyOf(IDS[0]!)]);
      expect(await find(IDS[0]!)).toBe('destroyed');
      await expect(there.insert([keyOf(IDS[0]!)])).rejects.toMatchObject({
        code: 'store_unavailable',
      });
      expect(await here.count()).toEqual(new Map([['destroyed', 1]]));
    });

    test('a key that is not known here can be destroyed all the same', async () => {
      await here.endErasure('session-1', [IDS[0]!, IDS[0]!]);
      expect(await find(IDS[0]!)).toBe('destroyed');
      await expect(there.insert([keyOf(IDS[0]!)])).rejects.toMatchObject({
        code: 'store_unavailable',
      });
    });

    test('a key is wrapped anew, and one that is not known is not made', async () => {
      await here.insert([keyOf(IDS[0]!)]);
      const anew = keyOf(IDS[0]!, MASTERS[1]);
      await there.rewrap([anew, keyOf(IDS[1]!)]);
      expect(plain((await find(IDS[0]!)) as WrappedKey)).toEqual(plain(anew));
      expect(await find(IDS[1]!)).toBeUndefined();
      expect(await here.count()).toEqual(new Map([[MASTERS[1], 1]]));
    });

    test('an erasure stays noted until it ends, the oldest first, whoever notes it again', async () => {
      const key = keyOf(IDS[0]!);
      await here.insert([key]);
      const noted = (stream: string) => ({ stream, why: `why ${stream}, “said”` });
      for (const stream of ['session-2', 'session-1', 'agent-1'])
        await here.beginErasure(stream, noted(stream).why);
      await there.beginErasure('session-2', 'another reason');
      expect(await there.listErasures(10)).toEqual(
        ['session-2', 'session-1', 'agent-1'].map(noted),
      );
      expect(await there.listErasures(2)).toEqual(['session-2', 'session-1'].map(noted));
      await there.endErasure('session-2', [key.key_id]);
      await there.endErasure('session-1', []);
      await there.endErasure('session-unknown', []);
      expect(await here.listErasures(10)).toEqual([noted('agent-1')]);
      expect(await find(key.key_id)).toBe('destroyed');
    });

    test('many keys are kept and found at once', async () => {
      const keys = newKeys(2_000);
      await here.insert(keys);
      expect((await there.find(idsOf(keys))).size).toBe(2_000);
      expect(await there.count()).toEqual(new Map([[MASTERS[0], 2_000]]));
    });

    test('a closed store says that it is not available', async () => {
      await here.close();
      await expect(here.find([IDS[0]!])).rejects.toMatchObject({ code: 'store_unavailable' });
      await expect(here.insert(newKeys(1))).rejects.toMatchObject({ code: 'store_unavailable' });
    });
  });

  test(
    `${name}: whatever two processes do one after the other, the store is what the simplest one would be`,
    async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.array(fc.tuple(aStep, fc.boolean()), { minLength: 1, maxLength: 12 }),
          async (steps) => {
            const own = await create();
            const [one, other] = [await own.open(), await own.open()];
            const model: Model = { keys: new Map(), notes: new Set() };
            try {
              for (const [step, byOther] of steps) await take(step, byOther ? other : one, model);
              await expectSame(one, model);
              await expectSame(other, model);
            } finally {
              await one.close();
              await other.close();
              await own.dispose();
            }
          },
        ),
        { numRuns: size({ small: 8, full: 300 }) },
      );
    },
    size({ small: 240_000, full: 1_200_000 }),
  );
}
