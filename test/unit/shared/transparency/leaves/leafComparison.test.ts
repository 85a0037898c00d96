import { recordedHash } from '../../../../../shared/eventlog/hashChain.ts';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { beforeEach, expect, test } from '@jest/globals';
import {
  storeUnavailableError,
  TurnlogError,
} from '../../../../../shared/lib/errors/turnlogError.ts';
import type { Position, StoredEvent } from '../../../../../shared/ports/eventStore.ts';
import {
  createLeafComparison,
  type LeafComparison,
} from '../../../../../shared/transparency/leaves/leafComparison.ts';
import type { TileReader } from '../../../../../shared/transparency/tileStore.ts';
import { turnsDuring } from '../../../../support/fakes/loopTurns.ts';
import { fixedLog } from '../../../../support/fakes/fixedLog.ts';
import { placed, streamsWriter, treeOfLog } from '../../../../support/fakes/memoryLog.ts';
import { signedTree } from '../../../../support/fakes/ownTree.ts';

const STREAM = 'session-1';
const LOST = 'The transparency log has no tile.';
let genuine: StoredEvent[];
let log: StoredEvent[];
let reads: number;
let stateReads: number;
/** True while the files have other bytes. */
let damaged: boolean;
let failure: Error | undefined;
let stateFailure: Error | undefined;
/** Leaves of the tree, which may be fewer than the events of the log. */
let size: number;
/** The event that the state of the tree names, if it is not that of the last leaf. */
let named: number | undefined;
/** The position and the log that the state names, if they are others. */
let claimed: { position?: Position; event_id?: string };
/** Leaves of the tree by its state, if those are not as many as were signed. */
let stored: number | undefined;
let ids: { treeId: string; logId: string };
let doubt: string | undefined;
/** False while the log has no checkpoint. */
let isSigned: boolean;
/** The id of the tree that has lost its entries. */
let lostIn: string | undefined;
/** What the log has at the end of the tree, if it is another event. */
let atEnd: StoredEvent | undefined;

beforeEach(() => {
  const write = streamsWriter();
  genuine = placed(Array.from({ length: 5 }, (_, at) => write(STREAM, { at })));
  log = genuine;
  reads = 0;
  stateReads = 0;
  damaged = false;
  failure = undefined;
  stateFailure = undefined;
  atEnd = undefined;
  named = undefined;
  claimed = {};
  size = 5;
  stored = undefined;
  ids = { treeId: 'tree', logId: 'log' };
  isSigned = true;
  doubt = undefined;
  lostIn = undefined;
});

/** The same stream, changed at a revision and with hashes that fit again. */
function rewritten(revision: number): StoredEvent[] {
  const write = streamsWriter();
  return placed(
    genuine.map(({ id }, at) => write(STREAM, at === revision ? { forged: true } : { at }, id)),
  );
}

async function compared(events = genuine, signed = size): Promise<LeafComparison> {
  const { tiles: files, heads } = await treeOfLog(events, [signed]);
  const tiles: TileReader = {
    async read(path) {
      if (path.includes('entries')) reads += 1;
      if (failure && path.includes('entries')) throw failure;
      return damaged && path.includes('entries') ? Buffer.from('damaged') : files.read(path);
    },
    readCheckpoint: async () => undefined,
    beforeBundle: async () => undefined,
    async state() {
      stateReads += 1;
      if (stateFailure) throw stateFailure;
      const last = events[named ?? (stored ?? size) - 1];
      const of = last && {
        log_id: events[0]!.id,
        position: last.position,
        event_id: last.id,
        event_hash: recordedHash(last),
        ...claimed,
      };
      return { size: stored ?? size, checkpoint: of };
    },
  };
  const eventAt = async (position: string) =>
    atEnd ?? log.find((event) => event.position === position);
  const ofLog = { ...fixedLog(log), eventAt };
  const tree = signedTree(tiles, () => (isSigned ? heads[0] : undefined), ids);
  return createLeafComparison(ofLog, {
    ...tree,
    doubt: () => doubt,
    async head() {
      const head = await tree.head();
      if (!head || head.treeId !== lostIn) return head;
      const read: TileReader['read'] = async (path) =>
        path.includes('entries') ? undefined : tiles.read(path);
      return { ...head, reader: { ...tiles, read } };
    },
  });
}

test('takes events that fit their leaves, and reads a bundle once', async () => {
  const comparison = await compared();
  expect(await comparison.findFlaw(genuine)).toBeUndefined();
  expect(await comparison.findFlaw(genuine.slice(1, 3))).toBeUndefined();
  expect(reads).toBe(1);
});

test('other work gets turns of the event loop while a long page is compared', async () => {
  const write = streamsWriter();
  const long = placed(Array.from({ length: 200 }, (_, at) => write(STREAM, { at })));
  log = long;
  const comparison = await compared(long, (size = long.length));
  const turnsToCompare = (events: readonly StoredEvent[]) =>
    turnsDuring(async () => expect(await comparison.findFlaw(events)).toBeUndefined());
  const first = await turnsToCompare(long);
  const again = await turnsToCompare(long);
  // Then only their hashes are checked.
  expect(again).toBeGreaterThan(20);
  expect(first).toBeGreaterThan(again + 20);
  expect(await turnsToCompare(long.slice(-2))).toBe(0);
});

test('readers that find the size of the tree outdated share one read of it', async () => {
  const comparison = await compared();
  const flaws = [1, 2, 3].map((from) => comparison.findFlaw(genuine.slice(from)));
  expect(await Promise.all(flaws)).toEqual([undefined, undefined, undefined]);
  expect(stateReads).toBe(1);
});

test('names the first event that was rewritten with its chain', async () => {
  log = rewritten(2);
  expect(await (await compared()).findFlaw(log)).toEqual({
    reason: expect.stringContaining('the event at revision 2 is not the one that was recorded'),
    revision: 2,
  });
});

test('names an event that does not fit its hash, or the one before it', async () => {
  const comparison = await compared();
  const changed = genuine.with(3, { ...genuine[3]!, data: '{"at":7}' });
  expect(await comparison.findFlaw(changed)).toMatchObject({ revision: 3 });
  const other = genuine.with(3, rewritten(0)[3]!);
  expect(await comparison.findFlaw(other)).toMatchObject({ revision: 3 });
});

test('compares what the tree does not cover only with what this process has appended', async () => {
  size = 2;
  log = rewritten(3);
  expect(await (await compared()).findFlaw(log)).toBeUndefined();
  const comparison = await compared();
  comparison.appended(STREAM, 4, genuine);
  expect(await comparison.findFlaw(log)).toEqual({
    reason: 'the event at revision 4 is not the one that was recorded',
    revision: 4,
  });
  expect(await comparison.findFlaw(genuine)).toBeUndefined();
});

test('compares the events before one that was read alone, and has a leaf though a forger appended it', async () => {
  const comparison = await compared(rewritten(1).with(1, genuine[1]!));
  log = rewritten(1);
  expect(await comparison.findFlaw(log.slice(4))).toBeUndefined();
  for (const events of [log, log.slice(1), log])
    expect(await comparison.findFlaw(events)).toMatchObject({ revision: 1 });
});

test('compares events once, whatever page comes first', async () => {
  const comparison = await compared();
  for (const from of [3, 0, 2, 0]) {
    reads = 0;
    expect(await comparison.findFlaw(genuine.slice(from))).toBeUndefined();
  }
  failure = new TurnlogError('store_unavailable', 'Nothing is read any more.');
  expect(await comparison.findFlaw(genuine, { mustCompare: true })).toBeUndefined();
});

test('knows the events of its own appends, as long as they follow each other', async () => {
  const comparison = await compared();
  comparison.appended(STREAM, 1, genuine.slice(1, 2));
  comparison.appended(STREAM, 3, genuine.slice(2, 4));
  expect(comparison.areOwn(genuine.slice(1, 4))).toBe(true);
  expect(comparison.areOwn(genuine.slice(0, 4))).toBe(false);
  expect(comparison.areOwn(genuine.slice(1, 3))).toBe(false);
  expect(comparison.areOwn(rewritten(2).slice(1, 4))).toBe(false);
});

test('passes over a store that is away and says so, unless events decide about access', async () => {
  log = rewritten(2);
  const comparison = await compared();
  failure = storeUnavailableError('The database is away.', undefined, true);
  await expect(comparison.findFlaw(log, { mustCompare: true })).rejects.toBe(failure);
  stateFailure = failure;
  expect(await comparison.findFlaw(log)).toBeUndefined();
  const reason = 'Events are not being compared with the transparency log. The database is away.';
  expect(comparison.trouble()).toBe(reason);
  await nextTurn();
  expect(comparison.trouble()).toBe(reason);
  stateFailure = undefined;
  failure = undefined;
  for (let turns = 0; comparison.trouble() !== undefined && turns < 10; turns += 1)
    await nextTurn();
  expect(comparison.trouble()).toBeUndefined();
});

test.each([
  storeUnavailableError('The files are refused.', Object.assign(new Error(), { code: 'ENXIO' })),
  new TypeError('A path has a null byte.'),
])('takes nothing while the tree is refused: $message', async (refusal) => {
  log = rewritten(2);
  stateFailure = refusal;
  await expectLost(await compared(), refusal.message, () => (stateFailure = undefined));
});

const UNDECODABLE: [string, Partial<StoredEvent>][] = [
  ['data', { data: '{"at":' }],
  ['data with a lone surrogate', { data: '{"at":"\\ud800"}' }],
  ['metadata', { metadata: 'no JSON' }],
  ['metadata that is null', { metadata: 'null' }],
];

test.each(UNDECODABLE)('names an event of which %s can’t be decoded', async (_what, changes) => {
  const changed = genuine.with(2, { ...genuine[2]!, ...changes });
  for (const events of [changed, changed.slice(2)])
    expect(await (await compared()).findFlaw(events)).toEqual({
      reason: expect.stringContaining("the event at revision 2 can't be decoded: "),
      revision: 2,
    });
});

test('names an event whose leaf is in a file that is lost', async () => {
  failure = new TurnlogError('proof_invalid', LOST);
  for (const mustCompare of [false, true])
    expect(await (await compared()).findFlaw(genuine, { mustCompare })).toEqual({
      reason: `the event at revision 0 can't be compared with its leaf: ${LOST}`,
      revision: 0,
    });
});

/** The failure of a comparison, which is the trouble until it succeeds. */
async function expectLost(
  comparison: LeafComparison,
  reason: string,
  mend: () => void,
  unavailable = {
    code: 'store_unavailable',
    message: `Events can't be compared with the transparency log. ${reason}`,
  },
) {
  expect(comparison.trouble()).toBeUndefined();
  await expect(comparison.findFlaw(log)).rejects.toMatchObject(unavailable);
  expect(comparison.trouble()).toBe(reason);
  await nextTurn();
  expect(comparison.trouble()).toBe(reason);
  mend();
  comparison.trouble();
  await nextTurn();
  expect(comparison.trouble()).toBeUndefined();
}

test('takes nothing beyond a state that names an earlier event than the last leaf', async () => {
  named = 2;
  log = rewritten(4);
  const reason = `The state of the transparency log names the event ${genuine[2]!.id}, which is not that of its last leaf. Put its files back from a backup.`;
  await expectLost(await compared(), reason, () => (named = undefined));
});

test('takes nothing beyond a state that names the last event at an earlier position', async () => {
  const [, , earlier, , last] = genuine;
  claimed = { position: earlier!.position };
  log = rewritten(3);
  const reason = `The transparency log ends with the event ${last!.id} at ${earlier!.position}, which the event log does not have there. Restore both from one backup.`;
  const changed = { code: 'log_changed', message: reason };
  await expectLost(await compared(), reason, () => (claimed = {}), changed);
});

test('another tree of the same log does not forget what this process has appended', async () => {
  const comparison = await compared();
  await comparison.findFlaw(genuine.slice(0, 1));
  comparison.appended(STREAM, 4, genuine);
  ids.treeId = 'another';
  await comparison.findMissing(STREAM, { known: 4, newest: 3 });
  expect(comparison.newestKnown(STREAM)).toBe(4);
  ids.treeId = 'of a restored log';
  ids.logId = 'restored';
  await comparison.findMissing(STREAM, { known: 4, newest: 3 });
  expect(comparison.newestKnown(STREAM)).toBe(-1);
});

test('a restored log forgets what was appended before, also while it has no tree', async () => {
  const comparison = await compared();
  await comparison.findFlaw(genuine);
  isSigned = false;
  expect(await comparison.findMissing(STREAM, { known: 4, newest: 3 })).toBeUndefined();
  Object.assign(ids, { treeId: 'of a restored log', logId: 'restored' });
  isSigned = true;
  expect(await comparison.findMissing(STREAM, { known: 4, newest: 3 })).toBeUndefined();
});

test('is not in trouble any more once another tree replaces the one that lost a file', async () => {
  const comparison = await compared();
  lostIn = 'tree';
  expect(await comparison.findFlaw(genuine)).toMatchObject({ revision: 0 });
  expect(comparison.trouble()).toContain('has no tile/entries');
  ids.treeId = 'another';
  for (let turns = 0; comparison.trouble() !== undefined && turns < 10; turns += 1)
    await nextTurn();
  expect(comparison.trouble()).toBeUndefined();
});

test('is in trouble while the newest checkpoint is in doubt, and reads it again', async () => {
  doubt = 'The checkpoint is older.';
  const comparison = await compared();
  expect(comparison.trouble()).toBe(doubt);
  expect(stateReads).toBe(0);
  await nextTurn();
  expect(stateReads).toBe(1);
  doubt = undefined;
  expect(comparison.trouble()).toBeUndefined();
});

test('compares events behind the signed ones with the leaves that are not signed', async () => {
  log = rewritten(4);
  const comparison = await compared(genuine, 3);
  stored = 5;
  expect(await comparison.findFlaw(log)).toMatchObject({ revision: 4 });
  expect(await (await compared(genuine, 3)).findFlaw(genuine)).toBeUndefined();
});

test('takes no event for one behind the signed ones', async () => {
  log = rewritten(2);
  const forged = genuine.concat(log[2]!);
  size = 5;
  stored = 6;
  named = 5;
  claimed = { position: genuine[4]!.position };
  log = genuine.with(2, log[2]!);
  const comparison = await compared(forged);
  expect(await comparison.findFlaw(log.slice(2, 3))).toMatchObject({ revision: 2 });
});

test('takes a file that was put back, without a restart', async () => {
  size = 2;
  const comparison = await compared();
  damaged = true;
  await expect(comparison.findFlaw(genuine)).resolves.toBeDefined();
  damaged = false;
  expect(await comparison.findFlaw(genuine)).toBeUndefined();
  comparison.trouble();
  await nextTurn();
  expect(comparison.trouble()).toBeUndefined();
  reads = 0;
  expect(await comparison.findFlaw(genuine.slice(0, 1))).toBeUndefined();
  expect(reads).toBeLessThan(2);
});

test('takes nothing while the index of bundles is lost', async () => {
  const write = streamsWriter();
  log = placed(Array.from({ length: 300 }, (_, at) => write(STREAM, { at })));
  size = log.length;
  const comparison = await compared(log);
  const reason = expect.stringContaining('does not know where bundle 1 begins') as unknown;
  expect(reads).toBe(0);
  await expect(comparison.findFlaw(log)).rejects.toMatchObject({ code: 'store_unavailable' });
  expect(comparison.trouble()).toEqual(reason);
});

test('takes nothing that does not fit while the log has another event at the end of the tree', async () => {
  log = rewritten(2);
  atEnd = genuine[0]!;
  const end = genuine[4]!;
  const reason = `The transparency log ends with the event ${end.id} at ${end.position}, which the event log does not have there. Restore both from one backup.`;
  const comparison = await compared();
  comparison.appended(STREAM, 3, genuine.slice(0, 4));
  const known = comparison.newestKnown(STREAM);
  await expect(comparison.findMissing(STREAM, { known, newest: 2 })).rejects.toMatchObject({
    code: 'log_changed',
  });
  await expectLost(await compared(), reason, () => void (atEnd = undefined), {
    code: 'log_changed',
    message: reason,
  });
});

test('names a lost end, but no event that was appended while the end was read', async () => {
  const comparison = await compared();
  comparison.appended(STREAM, 3, genuine.slice(0, 4));
  const known = comparison.newestKnown(STREAM);
  comparison.appended(STREAM, 4, genuine.slice(4));
  expect(await comparison.findMissing(STREAM, { known, newest: 3 })).toBeUndefined();
  expect(await comparison.findMissing(STREAM, { known, newest: 2 })).toEqual({
    reason: 'revision 3 is missing',
    revision: 3,
  });
});
