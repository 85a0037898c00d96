import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createHttpWitness } from '../../../../../infra/witness/httpWitness.ts';
import type { StoredEvent } from '../../../../../shared/ports/eventStore.ts';
import {
  proofInvalidError,
  storeUnavailableError,
} from '../../../../../shared/lib/errors/turnlogError.ts';
import {
  compareTree,
  type OutsideEvidence,
} from '../../../../../shared/transparency/kept/compareTree.ts';
import { formatCheckpoint } from '../../../../../shared/transparency/tlog/checkpoint.ts';
import { signNote } from '../../../../../shared/transparency/tlog/note.ts';
import { formatVkey, noteSigner } from '../../../../../shared/transparency/tlog/noteKeys.ts';
import { rootAt } from '../../../../../shared/transparency/tlog/proofs.ts';
import {
  restoreAccepted,
  sessionStarted,
  treeDeclared,
  treeReplaced,
} from '../../../../support/builders/events.ts';
import { recordHistory } from '../../../../support/builders/history.ts';
import { fixedLog } from '../../../../support/fakes/fixedLog.ts';
import { treeOf, type MemoryTiles } from '../../../../support/fakes/memoryTiles.ts';
import { startTestWitness, type TestWitness } from '../../../../support/servers/witness/witness.ts';

const { record } = recordHistory();
const FIRST = record({ stream: 'session-session_1' }, sessionStarted());
const ORIGIN = `log.test/${FIRST.id}`;
const KEY = generateKeyPairSync('ed25519').privateKey;
const VKEY = formatVkey(noteSigner(ORIGIN, KEY).key);
const DECLARED = record({ stream: `log-${FIRST.id}` }, treeDeclared(ORIGIN, [VKEY]));
const LOG = [FIRST, DECLARED];
const SIZE = 300;

let tiles: MemoryTiles;
let witness: TestWitness;
beforeEach(async () => {
  ({ tiles } = await treeOf(
    SIZE,
    Array.from({ length: SIZE }, (_, index) => index + 1),
  ));
  witness = await startTestWitness('witness.test/w', () => VKEY);
});
afterEach(() => witness.close());

async function checkpoint(
  size: number,
  { origin = ORIGIN, key = KEY, root }: { origin?: string; key?: typeof KEY; root?: Buffer } = {},
) {
  const signed = root ?? (await rootAt(tiles, Math.min(size, SIZE)));
  return signNote(formatCheckpoint({ origin, size, root: signed }), [noteSigner(origin, key)]);
}

/** Compares a tree whose newest checkpoint has so many leaves. */
async function compared(
  outside: Partial<OutsideEvidence> & { notes?: string[] },
  {
    events = LOG,
    signed = SIZE,
    keys = [KEY],
    stored = SIZE,
    grown,
  }: {
    events?: readonly StoredEvent[];
    signed?: number | null;
    keys?: KeyObject[];
    stored?: number;
    grown?: number | undefined;
  } = {},
) {
  const sizes = [stored];
  const note = signed === null ? undefined : await checkpoint(signed);
  const { notes = [], kept = [], witnesses = [], wanted = witnesses.length } = outside;
  const kepts = notes.map((one, index) => ({ name: `kept/${index}`, note: one }));
  return compareTree(
    fixedLog(events),
    {
      name: 'log.test',
      signingKeys: () => keys,
      treeOf: () => ({
        ...tiles,
        readCheckpoint: async () => note,
        state: async () => ({ size: sizes.shift() ?? grown ?? stored, checkpoint: undefined }),
      }),
    },
    { witnesses, wanted, kept: [...kept, { name: 'kept', read: async () => kepts }] },
    new AbortController().signal,
  );
}

const asked = () => ({ witnesses: [createHttpWitness(witness)] });

describe('kept checkpoints', () => {
  test('of any age fit a tree that only grew, also under an earlier name of the log', async () => {
    const notes = [
      await checkpoint(1),
      await checkpoint(256),
      await checkpoint(SIZE),
      await checkpoint(200, { origin: `older.test/${FIRST.id}` }),
    ];
    const found = await compared({ notes });
    expect(found.refusal).toBeUndefined();
    expect(found.compared.map(({ size }) => size)).toEqual([1, 256, SIZE, 200]);
  });

  test('fit a tree that was made in other steps, without the partial tiles of their sizes', async () => {
    const note = await checkpoint(280);
    const { read } = tiles;
    tiles.read = async (path) => (path === 'tile/0/001.p/24' ? undefined : read(path));
    const found = await compared({ notes: [note] });
    expect(found).toMatchObject({ refusal: undefined, compared: [{ size: 280 }] });
  });

  test('that are larger show that the log was rolled back', async () => {
    const found = await compared({ notes: [await checkpoint(301)] });
    expect(found.refusal).toContain(
      `The log was rolled back: kept/0 knows a checkpoint of 301 entries of ${ORIGIN}, and the transparency log has 300.`,
    );
  });

  test('with another root show that it was rewritten', async () => {
    const root = await rootAt(tiles, 17);
    const found = await compared({ notes: [await checkpoint(18, { root: root as never })] });
    expect(found.refusal).toContain(
      'The log was rewritten: kept/0 knows a checkpoint of 18 entries',
    );
  });

  test('that no key of the log has signed are refused, with its own or its declared keys', async () => {
    const other = generateKeyPairSync('ed25519').privateKey;
    const found = await compared({ notes: [await checkpoint(5, { key: other })] });
    expect(found.refusal).toContain('has no signature of a key that is known');
    const declaredOnly = await compared({ notes: [await checkpoint(5)] }, { keys: [] });
    expect(declaredOnly.refusal).toBeUndefined();
  });

  test('of another log are refused, and of an empty log too', async () => {
    const note = await checkpoint(5, { origin: 'log.test/another' });
    expect((await compared({ notes: [note] })).refusal).toContain('of another log');
    expect((await compared({ notes: [note] }, { events: [] })).refusal).toContain(
      'The event log is empty, and kept/0 has a checkpoint of 5 entries of log.test/another.',
    );
  });

  test('of a tree that a declaration ended say nothing of the new one', async () => {
    const restored = record({ stream: `log-${FIRST.id}` }, restoreAccepted([FIRST.id]));
    const found = await compared(
      { notes: [await checkpoint(9_999)] },
      { events: [...LOG, restored], signed: null, stored: 0 },
    );
    expect(found).toEqual({
      compared: [],
      troubles: [],
      refusal: undefined,
      outvoted: [],
      isNew: false,
    });
  });

  test('of a tree that another one replaced are compared with that, once it is as large', async () => {
    const replaced = record({ stream: `log-${FIRST.id}` }, treeReplaced([ORIGIN]));
    const events = [...LOG, replaced];
    const genuine = await checkpoint(200);
    const changed = await checkpoint(18, { root: (await rootAt(tiles, 17)) as never });
    const found = await compared({ notes: [genuine, changed] }, { events });
    expect(found.compared).toEqual([{ name: 'kept/0', size: 200 }]);
    expect(found.refusal).toContain(
      'The log was rewritten: kept/1 knows a checkpoint of 18 entries',
    );
    const begun = await compared({ notes: [changed] }, { events, signed: null, stored: 10 });
    expect(begun).toMatchObject({ compared: [], refusal: undefined });
    const key = generateKeyPairSync('ed25519').privateKey;
    const unknown = await compared({ notes: [await checkpoint(5, { key })] }, { events });
    expect(unknown).toMatchObject({ refusal: undefined, troubles: [{ name: 'kept/0' }] });
  });

  test('that can’t be read, or are none, are told by name, and the start goes on', async () => {
    const away = { name: 'away', read: async () => ({ trouble: 'can’t be read (EACCES)' }) };
    const found = await compared({ notes: ['no note'], kept: [away] });
    expect(found.refusal).toBeUndefined();
    expect(found.troubles).toEqual([
      { name: 'away', trouble: 'can’t be read (EACCES)' },
      { name: 'kept/0', trouble: expect.stringContaining('holds no checkpoint') },
    ]);
  });

  test('that the tiles can’t be compared with are no reason to go on', async () => {
    tiles.read = async () => {
      throw proofInvalidError('The transparency log has no tile/0/000.');
    };
    const note = signNote(formatCheckpoint({ origin: ORIGIN, size: 5, root: Buffer.alloc(32) }), [
      noteSigner(ORIGIN, KEY),
    ]);
    const found = await compared({ notes: [note] }, { signed: null, events: [FIRST] });
    expect(found.refusal).toContain('The transparency log has no tile/0/000.');
  });
});

describe('witnesses', () => {
  const cosign = async (size: number): Promise<void> => {
    witness.forget();
    witness.honest(`old 0\n\n${await checkpoint(size)}`);
    expect(witness.head().size).toBe(size);
    witness.requests.length = 0;
  };

  test('that know the newest checkpoint are asked once, and cosign it again', async () => {
    await cosign(SIZE);
    const found = await compared(asked());
    expect(found).toMatchObject({ compared: [{ name: 'witness.test/w', size: SIZE }] });
    expect(found.refusal).toBeUndefined();
    expect(witness.requests).toHaveLength(1);
  });

  test('that know an earlier one, or none, are told the newest', async () => {
    for (const size of [100, 0]) {
      if (size > 0) await cosign(size);
      else witness.forget();
      expect((await compared(asked())).refusal).toBeUndefined();
      expect(witness.head().size).toBe(SIZE);
    }
  });

  test('contradict no log whose tiles can’t be read now', async () => {
    await cosign(100);
    const { read } = tiles;
    tiles.read = async (path) => {
      if (witness.requests.length > 0) throw storeUnavailableError('away');
      return read(path);
    };
    await expect(compared(asked())).rejects.toMatchObject({ code: 'store_unavailable' });
  });

  test('that know a larger one show that the log was rolled back', async () => {
    await cosign(SIZE);
    const found = await compared(asked(), { signed: 200, stored: 200 });
    expect(found.refusal).toContain(
      'The log was rolled back: the witness witness.test/w knows a checkpoint of 300 entries',
    );
    expect(witness.head().size).toBe(SIZE);
  });

  test('that were shown more by another process, while they are asked, know no rolled-back log', async () => {
    await cosign(SIZE);
    const found = await compared(asked(), { signed: 200, stored: 200, grown: SIZE });
    expect(found.refusal).toBeUndefined();
    expect(found.compared).toEqual([{ name: 'witness.test/w', size: SIZE }]);
  });

  test('that know one that was not stored before a crash fit the leaves that were', async () => {
    await cosign(SIZE);
    expect((await compared(asked(), { signed: 200 })).refusal).toBeUndefined();
  });

  test.each([422, 409])(
    'that know another root say so, with %i for one of the same size',
    async (status) => {
      await cosign(SIZE);
      if (status === 409)
        witness.use(() => ({ status, type: 'text/x.tlog.size', body: `${SIZE}\n` }));
      else witness.use(() => ({ status, body: 'bad consistency proof\n' }));
      const found = await compared(asked());
      expect(found.refusal).toContain('The log does not fit: the witness witness.test/w');
      expect(found.refusal).toContain('rewritten');
    },
  );

  test('are shown an empty tree where there is no checkpoint, which commits to nothing', async () => {
    await cosign(7);
    const before = { events: [FIRST], signed: null, stored: 0 };
    expect((await compared(asked(), before)).refusal).toContain('rolled back');
    expect(witness.requests[0]).toContain(`\n\n${ORIGIN}\n0\n`);
    expect((await compared(asked(), { ...before, keys: [] })).troubles).toEqual([
      { name: 'witness.test/w', trouble: 'can’t be asked: the signing key file is missing' },
    ]);
  });

  describe('of which several are asked', () => {
    const others: TestWitness[] = [];
    afterEach(async () => {
      for (const other of others.splice(0)) await other.close();
    });

    /** Asks the witness, and so many others that were never shown more than this. */
    async function askedWith(count: number, shown: number) {
      while (others.length < count)
        others.push(await startTestWitness(`witness.test/${others.length}`, () => VKEY));
      for (const other of others) other.honest(`old 0\n\n${await checkpoint(shown)}`);
      return [witness, ...others].map((one) => createHttpWitness(one));
    }
    const lies = [
      { status: 409, type: 'text/x.tlog.size', body: '9999\n' },
      { status: 422, body: 'bad consistency proof\n' },
    ];

    test.each(lies)(
      'one that lies holds no start that enough others confirm: $status',
      async (lie) => {
        await cosign(SIZE);
        witness.use(() => lie);
        const witnesses = await askedWith(2, SIZE);
        const found = await compared({ witnesses, wanted: 2 });
        expect(found).toMatchObject({ refusal: undefined, outvoted: [expect.any(String)] });
        expect(found.outvoted[0]).toContain('the witness witness.test/w');
        expect(found.outvoted[0]).not.toContain('Put the right log back');
        expect(found.compared).toHaveLength(2);
      },
    );

    test('those that never saw the newest checkpoint confirm no rolled-back log', async () => {
      await cosign(SIZE);
      const witnesses = await askedWith(1, 200);
      const rolledBack = { signed: 200, stored: 200 };
      const found = await compared({ witnesses, wanted: 1 }, rolledBack);
      expect(found.refusal).toContain('The log was rolled back: the witness witness.test/w');
      const most = await compared({ witnesses: await askedWith(2, 200), wanted: 1 }, rolledBack);
      expect(most.refusal).toContain('The log was rolled back');
    });

    test('an empty tree is confirmed by no cosignature', async () => {
      await cosign(7);
      const witnesses = await askedWith(2, 0);
      const before = { events: [FIRST], signed: null, stored: 0 };
      const found = await compared({ witnesses, wanted: 2 }, before);
      expect(found.refusal).toContain('rolled back');
    });

    test('a kept checkpoint, which the log itself has signed, is not outvoted', async () => {
      const witnesses = await askedWith(2, SIZE);
      const found = await compared({ witnesses, wanted: 2, notes: [await checkpoint(301)] });
      expect(found.refusal).toContain('The log was rolled back: kept/0');
    });
  });

  test('that do not answer, or do not know the log, are told by name', async () => {
    witness.use(() => ({ status: 404, body: '' }));
    const found = await compared(asked());
    expect(found.refusal).toBeUndefined();
    expect(found.troubles[0]!.trouble).toContain('does not know the log');
  });
});

test('a declared tree without a checkpoint is missing', async () => {
  const found = await compared({}, { signed: null });
  expect(found.refusal).toContain(`The transparency log ${ORIGIN} is missing`);
  expect(found.refusal).toContain('audit declare-tree --reason');
});

test('a log with events that declares no tree, and has none, is new', async () => {
  const found = await compared({}, { events: [FIRST], signed: null, stored: 0 });
  expect(found).toMatchObject({ isNew: true, refusal: undefined });
  expect(await compared({}, { events: [] })).toMatchObject({ isNew: false });
  expect(await compared({}, { events: [FIRST] })).toMatchObject({ isNew: false });
});
