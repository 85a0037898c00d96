/** A prover over a log that declares its trees. */
import { cp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { openOneFileTree } from '../../../infra/files/tileReader.ts';
import { openSqliteEventStore } from '../../../infra/sqlite/eventStore/eventStore.ts';
import { systemClock, systemIds } from '../../../services/compose/system.ts';
import { createDamagedStreams } from '../../../shared/eventlog/reading/damagedStreams.ts';
import type { EventStore } from '../../../shared/ports/eventStore.ts';
import { declareTree, replaceTree } from '../../../shared/restoredLogs/declareTree.ts';
import { readLogTrees } from '../../../shared/transparency/logTrees.ts';
import { formatCheckpoint, parseCheckpoint } from '../../../shared/transparency/tlog/checkpoint.ts';
import { parseNote, signNote } from '../../../shared/transparency/tlog/note.ts';
import { formatVkey, noteSigner } from '../../../shared/transparency/tlog/noteKeys.ts';
import { rootAt } from '../../../shared/transparency/tlog/proofs.ts';
import { memoryKeys } from '../../support/fakes/memoryKeys.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';
import {
  signingKey,
  someEvents,
  startProver,
  type RunningProver,
} from '../../support/builders/prover.ts';

const EVENTS = someEvents(9);
const ORIGIN = `turnlog/${EVENTS[0]!.id}`;
const key = signingKey();

let folder: string;
let trees: string;
let store: EventStore;
let provers: RunningProver[];
beforeEach(async () => {
  folder = await temporaryFolder();
  trees = join(folder, 'tlog');
  store = await openSqliteEventStore({ folder });
  provers = [];
  await append(0, 3);
});
afterEach(async () => {
  for (const prover of provers) await prover.stop();
  await store.close();
  await rm(folder, { recursive: true });
});

async function append(from: number, to: number): Promise<void> {
  for (const { stream, ...event } of EVENTS.slice(from, to))
    await store.append(stream, 'no_stream', [event]);
}

const context = () => ({
  store: { ...store, keys: memoryKeys().keys },
  damaged: createDamagedStreams(() => undefined),
  clock: systemClock,
  ids: systemIds,
});

function prove(options: Parameters<typeof startProver>[2] = {}): RunningProver {
  const prover = startProver(store, trees, {
    signingKeys: () => [key],
    declareTree: (tree) => declareTree(context(), tree),
    ...options,
  });
  provers.push(prover);
  return prover;
}

/** Proves until the tree has that many leaves, and stops. */
async function proved(size: number, options = {}): Promise<void> {
  const prover = prove(options);
  await prover.until((report) => report.size === size);
  await prover.stop();
}

const troubleOf = async (options = {}): Promise<string> =>
  (await prove(options).until(({ trouble }) => trouble !== undefined)).trouble!;

const newest = async () =>
  parseCheckpoint(parseNote((await openOneFileTree(trees).readCheckpoint())!).text);

const declarations = async () => [...(await readLogTrees(store))!.declared];

test('a tree is declared once, before the first checkpoint with leaves, which covers the declaration', async () => {
  const prover = prove();
  expect(await prover.until(({ size }) => size !== undefined)).toMatchObject({ size: 4 });
  await prover.stop();
  await append(3, 5);
  await proved(6);
  const vkeys = [formatVkey(noteSigner(ORIGIN, key).key)];
  expect(await declarations()).toEqual([[ORIGIN, expect.objectContaining({ vkeys })]]);
});

test('the tree of an earlier release is declared where it goes on', async () => {
  await proved(3, { declareTree: async () => undefined });
  const before = await newest();
  await proved(4);
  expect(await newest()).toMatchObject({ origin: before.origin, size: 4 });
  expect(await declarations()).toHaveLength(1);
});

test('a key that was added is declared, and signs alone then', async () => {
  const next = signingKey();
  await proved(4);
  await proved(5, { signingKeys: () => [key, next] });
  await append(3, 4);
  await proved(6, { signingKeys: () => [next] });
  expect((await declarations())[0]![1].vkeys).toHaveLength(2);
});

test.each(['tree', 'checkpoint'])(
  'a declared tree whose %s is gone is not begun again',
  async (what) => {
    await proved(4);
    await rm(what === 'tree' ? trees : join(trees, ORIGIN, 'checkpoint'), { recursive: true });
    expect(await troubleOf()).toContain(`The transparency log ${ORIGIN} is missing`);
    expect(await openOneFileTree(trees).readCheckpoint()).toBeUndefined();
  },
);

test('a crash after the declaration leaves a tree that is carried on', async () => {
  await expect(
    prove({
      async declareTree(tree) {
        await declareTree(context(), tree);
        throw new Error('the end');
      },
    }).until(({ trouble }) => trouble !== undefined),
  ).resolves.toBeDefined();
  await provers[0]!.stop();
  expect(await newest()).toMatchObject({ size: 0 });
  await proved(4);
});

test('no new key is made for a tree that was signed, and one is for the tree that replaces it', async () => {
  const asked: boolean[] = [];
  await proved(4);
  const signingKeys = (hasSigned: boolean) => {
    asked.push(hasSigned);
    return hasSigned ? [] : [key];
  };
  expect(await troubleOf({ signingKeys })).toContain('its signing key file is missing');
  expect(new Set(asked)).toEqual(new Set([true]));
  const id = await replaceTree(context(), 'the key is lost');
  await provers.at(-1)!.until(({ size }) => size === 6);
  expect(await newest()).toMatchObject({ origin: `turnlog/${id}`, size: 6 });
  expect(asked.at(-1)).toBe(false);
});

test('a checkpoint that another key has signed, which the log does not declare, is refused', async () => {
  await proved(4);
  const other = signingKey();
  const root = await rootAt(openOneFileTree(trees), 4);
  const text = formatCheckpoint({ origin: ORIGIN, size: 4, root });
  await writeFile(join(trees, ORIGIN, 'checkpoint'), signNote(text, [noteSigner(ORIGIN, other)]));
  expect(await troubleOf({ signingKeys: () => [other] })).toContain(
    'none of the keys that the event log declares',
  );
});

test('a running prover begins the tree that an operator declares', async () => {
  const prover = prove();
  await prover.until(({ size }) => size === 4);
  const before = await readFile(join(trees, ORIGIN, 'checkpoint'), 'utf8');
  const id = await replaceTree(context(), 'the key is lost');
  await prover.until(({ size }) => size === 6);
  expect(await newest()).toMatchObject({ origin: `turnlog/${id}`, size: 6 });
  expect(await readFile(join(trees, ORIGIN, 'checkpoint'), 'utf8')).toBe(before);
});

test('a running prover does not sign over a tree that was put back to an earlier state', async () => {
  await proved(4);
  await cp(trees, join(folder, 'earlier'), { recursive: true });
  const prover = prove();
  await append(3, 5);
  await prover.until(({ size }) => size === 6);
  await rm(trees, { recursive: true });
  await cp(join(folder, 'earlier'), trees, { recursive: true });
  await append(5, 6);
  const { trouble } = await prover.until(
    (report) => report.trouble?.includes('has signed') === true,
  );
  expect(trouble).toContain('this process has signed 6 leaves, and only 4 are stored');
  expect(await newest()).toMatchObject({ size: 4 });
});
