import type { KeyObject } from 'node:crypto';
import { beforeEach, expect, jest, test } from '@jest/globals';
import { storeUnavailableError, TurnlogError } from '../../../../shared/lib/errors/turnlogError.ts';
import type { StoredEvent } from '../../../../shared/ports/eventStore.ts';
import { openOwnTree, type OwnTree } from '../../../../shared/transparency/ownTree.ts';
import type { TileReader } from '../../../../shared/transparency/tileStore.ts';
import { formatCheckpoint } from '../../../../shared/transparency/tlog/checkpoint.ts';
import { signatureLine, signNote } from '../../../../shared/transparency/tlog/note.ts';
import { formatVkey, noteSigner } from '../../../../shared/transparency/tlog/noteKeys.ts';
import {
  restoreAccepted,
  sessionStarted,
  treeDeclared,
  treeReplaced,
} from '../../../support/builders/events.ts';
import { recordHistory } from '../../../support/builders/history.ts';
import { signingKey } from '../../../support/builders/prover.ts';
import { fixedLog } from '../../../support/fakes/fixedLog.ts';

const key = signingKey();
const foreign = signingKey();
let log: StoredEvent[];
let root: string;
let append: (event: Parameters<ReturnType<typeof recordHistory>['record']>[1]) => void;
/** The newest checkpoints, by origin. */
let notes: Map<string, string>;
let keyFile: KeyObject[];
let readFile: () => KeyObject[];
let tree: OwnTree;

beforeEach(() => {
  const { record } = recordHistory();
  const first = record({ stream: 'session-session_1' }, sessionStarted());
  root = first.id;
  log = [first];
  append = (event) => void log.push(record({ stream: `log-${root}` }, event));
  notes = new Map();
  keyFile = [key];
  readFile = () => keyFile;
  tree = openOwnTree(
    {
      firstEvent: async () => log[0],
      readStream: (...given) => fixedLog(log).readStream(...given),
    },
    { name: 'here', treeOf, signingKeys: () => readFile() },
  );
});

const treeOf = (origin: string): TileReader => ({
  read: async (path) => Buffer.from(`${path} of ${origin}`),
  readCheckpoint: async () => notes.get(origin),
  beforeBundle: async () => undefined,
  state: async () => ({ size: 7, checkpoint: undefined }),
});

const vkeyOf = (origin: string, by = key): string => formatVkey(noteSigner(origin, by).key);

function declare(name = 'here', id = root, ...keys: KeyObject[]): string {
  const origin = `${name}/${id}`;
  const all = keys.length === 0 ? [key] : keys;
  append(
    treeDeclared(
      origin,
      all.map((by) => vkeyOf(origin, by)),
    ),
  );
  return origin;
}

/** Stores a checkpoint of so many leaves. */
function sign(origin: string, size: number, ...keys: KeyObject[]): void {
  const signers = (keys.length === 0 ? [key] : keys).map((by) => noteSigner(origin, by));
  notes.set(
    origin,
    signNote(formatCheckpoint({ origin, size, root: Buffer.alloc(32, size) }), signers),
  );
}

/** The tree of the log under a name, and how often a checkpoint of it was read. */
function openCounted(name: string) {
  let reads = 0;
  const counted = openOwnTree(fixedLog(log), {
    name,
    signingKeys: () => keyFile,
    treeOf: (of) => ({
      ...treeOf(of),
      async readCheckpoint() {
        reads += 1;
        return notes.get(of);
      },
    }),
  });
  return { counted, reads: () => reads };
}

const found = async (): Promise<[string, number] | undefined> => {
  const head = await tree.head();
  return head && [head.origin, head.size];
};

test('a log without a tree has an empty one', async () => {
  expect(await found()).toBeUndefined();
  expect(await tree.state()).toEqual({ size: 0, checkpoint: undefined });
  expect([await tree.read('tile/0/000'), await tree.readCheckpoint()]).toEqual([
    undefined,
    undefined,
  ]);
});

test('the newest checkpoint of the declared tree is read, and its tiles', async () => {
  const origin = declare();
  sign(origin, 3);
  expect(await tree.head()).toMatchObject({ origin, size: 3, treeId: root, logId: root });
  const before = await tree.head();
  expect(await tree.head()).toBe(before);
  sign(origin, 5);
  expect(await found()).toEqual([origin, 5]);
  expect(await tree.readCheckpoint()).toBe(notes.get(origin));
  expect(String(await tree.read('tile/0/000'))).toBe(`tile/0/000 of ${origin}`);
});

test('a checkpoint that is older, gone or not signed so is passed over once another is known', async () => {
  const origin = declare();
  sign(origin, 5);
  await tree.head();
  sign(origin, 3);
  expect(await found()).toEqual([origin, 5]);
  sign(origin, 9, foreign);
  expect(await found()).toEqual([origin, 5]);
  for (const note of ['no note', undefined]) {
    if (note === undefined) notes.delete(origin);
    else notes.set(origin, note);
    expect(await found()).toEqual([origin, 5]);
  }
});

test('a declared tree without a checkpoint is missing', async () => {
  declare();
  await expect(tree.head()).rejects.toThrow('is missing: the event log declares that');
});

test('the tree of another server is not missing where this one declares its own', async () => {
  declare('elsewhere');
  await expect(tree.head()).rejects.toThrow('is missing: the event log declares that');
  const declaring = openOwnTree(fixedLog(log), {
    name: 'here',
    treeOf,
    signingKeys: () => keyFile,
    declares: true,
  });
  expect(await declaring.head()).toBeUndefined();
  declare();
  const declared = openOwnTree(fixedLog(log), {
    name: 'here',
    treeOf,
    signingKeys: () => keyFile,
    declares: true,
  });
  await expect(declared.head()).rejects.toThrow('is missing: the event log declares that');
});

test('a checkpoint counts only if a declared key and a key of the file have signed it', async () => {
  const origin = declare('here', root, key, foreign);
  sign(origin, 3, foreign);
  await expect(tree.head()).rejects.toThrow(
    'was signed by none of the keys in the signing key file',
  );
  keyFile = [];
  expect(await found()).toEqual([origin, 3]);
  keyFile = [key];
  sign(origin, 4, foreign, key);
  expect(await found()).toEqual([origin, 4]);
});

test('a key that the log does not declare is not taken, although it is in the file', async () => {
  const origin = declare('here', root, foreign);
  sign(origin, 3);
  await expect(tree.head()).rejects.toMatchObject({ code: 'proof_invalid' });
});

test('a log that declares none has the tree of its name that a key of the file has signed', async () => {
  const origin = `here/${root}`;
  sign(origin, 3);
  keyFile = [];
  expect(await found()).toBeUndefined();
  keyFile = [foreign];
  await expect(tree.head()).rejects.toMatchObject({ code: 'proof_invalid' });
  keyFile = [key];
  expect(await found()).toEqual([origin, 3]);
});

test('declarations that are cut off do not end the comparison', async () => {
  const origin = declare();
  sign(origin, 3);
  keyFile = [];
  await tree.head();
  log = log.slice(0, 1);
  expect(await found()).toEqual([origin, 3]);
});

test('of the trees of a renamed log the one with the most leaves is read', async () => {
  const before = declare('before');
  sign(before, 9);
  expect(await found()).toEqual([before, 9]);
  const here = declare();
  sign(here, 2);
  expect(await found()).toEqual([before, 9]);
  sign(here, 10);
  expect(await found()).toEqual([here, 10]);
});

test('a tree under an earlier name may have lost its key', async () => {
  sign(declare('before', root, foreign), 9, foreign);
  const here = declare();
  sign(here, 2);
  expect(await found()).toEqual([here, 2]);
});

test('a tree under an earlier name that can’t be read is not taken for one without a checkpoint', async () => {
  const before = declare('before');
  sign(before, 9);
  sign(declare(), 2);
  const away = storeUnavailableError('The database is away.');
  const renamed = openOwnTree(fixedLog(log), {
    name: 'here',
    signingKeys: () => keyFile,
    treeOf: (of) => ({
      ...treeOf(of),
      async readCheckpoint() {
        if (of === before) throw away;
        return notes.get(of);
      },
    }),
  });
  await expect(renamed.head()).rejects.toBe(away);
});

test('tiles are read from another tree a second after it is declared', async () => {
  const now = jest.spyOn(performance, 'now').mockReturnValue(5_000);
  const first = declare();
  sign(first, 9);
  expect(String(await tree.read('tile/0/000'))).toBe(`tile/0/000 of ${first}`);
  append(treeReplaced());
  const next = declare('here', log.at(-1)!.id);
  sign(next, 2);
  now.mockReturnValue(5_999);
  expect(String(await tree.read('tile/0/000'))).toBe(`tile/0/000 of ${first}`);
  now.mockReturnValue(6_000);
  expect(String(await tree.read('tile/0/000'))).toBe(`tile/0/000 of ${next}`);
  now.mockRestore();
});

test('another tree is read once it is declared, with the id of a restored log', async () => {
  sign(declare(), 9);
  await tree.head();
  const before = await found();
  append(treeReplaced());
  const { id: replaced } = log.at(-1)!;
  // Until the tree that replaces it has a checkpoint.
  expect(await found()).toEqual(before);
  const next = declare('here', replaced);
  sign(next, 2);
  expect(await tree.head()).toMatchObject({ origin: next, size: 2, logId: root });
  append(restoreAccepted([root]));
  const { id: restored } = log.at(-1)!;
  // Its leaves are others.
  expect(await tree.head()).toBeUndefined();
  sign(declare('here', restored), 1);
  expect(await tree.head()).toMatchObject({ treeId: restored, logId: restored, size: 1 });
});

test('calls at the same time share one read', async () => {
  const origin = declare();
  sign(origin, 3);
  const { counted, reads } = openCounted('here');
  await Promise.all([counted.head(), counted.readCheckpoint(), counted.state()]);
  expect(reads()).toBe(1);
  sign(origin, 5);
  expect((await counted.head())!.size).toBe(5);
});

test('readers wait for a checkpoint that is trusted', async () => {
  const origin = declare();
  sign(origin, 3, foreign);
  for (const read of [tree.readCheckpoint, () => tree.read('tile/0/000'), tree.state])
    await expect(read()).rejects.toMatchObject({
      code: 'store_unavailable',
      message: expect.stringContaining("The transparency log can't be used. "),
    });
  sign(origin, 3);
  expect(await tree.readCheckpoint()).toBe(notes.get(origin));
});

test('a cosignature that is added later is read', async () => {
  const origin = declare();
  sign(origin, 3);
  await tree.head();
  const line = signatureLine({ name: 'witness', id: '01020304', signature: Buffer.alloc(72) });
  notes.set(origin, `${notes.get(origin)}${line}`);
  expect(await tree.readCheckpoint()).toBe(notes.get(origin));
});

test('a checkpoint of another log with the same key is not taken', async () => {
  const other = 'staging/another';
  const origin = `x/${root}`;
  append(treeDeclared(origin, [vkeyOf(other)]));
  sign(other, 9);
  notes.set(origin, notes.get(other)!);
  await expect(tree.head()).rejects.toMatchObject({ code: 'proof_invalid' });
  sign(declare(), 3);
  expect(await found()).toEqual([`here/${root}`, 3]);
});

test('keys that were read are kept while the file can’t be read, and read again for another key', async () => {
  const origin = declare('here', root, key, foreign);
  sign(origin, 3);
  const read = readFile;
  readFile = () => {
    throw new TurnlogError('configuration_invalid', '/secret/path is half written.');
  };
  await expect(tree.head()).rejects.toMatchObject({
    code: 'store_unavailable',
    message: expect.not.stringContaining('/secret') as unknown,
  });
  readFile = read;
  expect(await found()).toEqual([origin, 3]);
  readFile = () => {
    throw new TurnlogError('configuration_invalid', 'It is half written.');
  };
  sign(origin, 4);
  expect(await found()).toEqual([origin, 4]);
  readFile = read;
  keyFile = [key, foreign];
  sign(origin, 5, foreign);
  expect(await found()).toEqual([origin, 5]);
});

test('what is passed over is named', async () => {
  const origin = declare();
  sign(origin, 5);
  await tree.head();
  expect(tree.doubt()).toBeUndefined();
  for (const [replace, reason] of [
    [() => sign(origin, 3), 'has 3 leaves, and 5 were signed'],
    [() => sign(origin, 9, foreign), 'has no signature of a key that is known'],
    [() => notes.delete(origin), 'is missing'],
  ] as const) {
    replace();
    await tree.head();
    expect(tree.doubt()).toContain(reason);
  }
  sign(origin, 6);
  await tree.head();
  expect(tree.doubt()).toBeUndefined();
});

test('a damaged declaration is named', async () => {
  const origin = declare();
  sign(origin, 3);
  const declared = log[1]!;
  log[1] = { ...declared, data: '{' };
  await expect(tree.head()).rejects.toThrow('declares a transparency log and is damaged');
  log[1] = declared;
  expect(await found()).toEqual([origin, 3]);
  log[1] = { ...declared, data: '{' };
  expect(await found()).toEqual([origin, 3]);
  expect(tree.doubt()).toContain('declares a transparency log and is damaged');
});

test('a log with many names is read under the last ones', async () => {
  for (let name = 0; name < 40; name += 1) sign(declare(`name${name}`), name + 1);
  const { counted, reads } = openCounted('name39');
  expect((await counted.head())!.size).toBe(40);
  expect(reads()).toBe(17);
});

test('a stored checkpoint that is none is named, with what to do', async () => {
  const origin = declare();
  for (const note of ['', 'here\n1\n\n— here AAAAAA==\n']) {
    notes.set(origin, note);
    await expect(tree.head()).rejects.toMatchObject({
      code: 'proof_invalid',
      message: expect.stringMatching(
        new RegExp(`^The checkpoint of ${origin} is damaged: .* Put it back from a backup\\.$`),
      ),
    });
  }
});
