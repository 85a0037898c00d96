import { recordedHash } from '../../../../../shared/eventlog/hashChain.ts';
import { beforeEach, expect, jest, test } from '@jest/globals';
import { createEndFinder } from '../../../../../shared/transparency/leaves/signedEnd.ts';
import { createSignedLeaves } from '../../../../../shared/transparency/leaves/signedLeaves.ts';
import type { SignedHead } from '../../../../../shared/transparency/ownTree.ts';
import type { Checkpoint, Position, StoredEvent } from '../../../../../shared/ports/eventStore.ts';
import { leafEntry } from '../../../../../shared/transparency/tlog/leaf.ts';
import { fixedLog, type FixedLog } from '../../../../support/fakes/fixedLog.ts';
import { logOf, treeOfLog } from '../../../../support/fakes/memoryLog.ts';
import { signedTree } from '../../../../support/fakes/ownTree.ts';

const EVENTS = logOf(700);
const { tiles, heads } = await treeOfLog(EVENTS, [100, 512, 600, 700]);
let state: { size: number; last: StoredEvent };
let log: StoredEvent[];
let bundles: Map<number, Checkpoint>;
let readTile: typeof tiles.read;

beforeEach(() => {
  state = { size: 700, last: EVENTS.at(-1)! };
  log = EVENTS;
  bundles = new Map(tiles.bundles);
  readTile = tiles.read;
});

const checkpointOf = (event: StoredEvent): Checkpoint => ({
  log_id: 'log',
  position: event.position,
  event_id: event.id,
  event_hash: recordedHash(event),
});

const headOf = async (size: number): Promise<SignedHead> =>
  (await signedTree(
    {
      read: (path) => readTile(path),
      beforeBundle: async (bundle) => bundles.get(bundle),
      readCheckpoint: async () => undefined,
      state: async () => ({ size: state.size, checkpoint: checkpointOf(state.last) }),
    },
    () => heads.find((head) => head.size === size),
  ).head())!;

const finder = () => createEndFinder(fixedLog(log, 64), createSignedLeaves());
const lastOf = async (size: number): Promise<unknown> => (await finder()(await headOf(size))).last;
const endAt = (index: number): object => ({
  position: EVENTS[index]!.position,
  event_id: EVENTS[index]!.id,
});

test.each([100, 512, 600, 700])('the end of %d signed leaves is found', async (size) => {
  expect(await lastOf(size)).toMatchObject(endAt(size - 1));
});

test('a state that names another event, or another place, is refused', async () => {
  state.last = EVENTS[500]!;
  await expect(lastOf(700)).rejects.toThrow('is not that of its last leaf');
  state.last = { ...EVENTS[699]!, position: EVENTS[500]!.position };
  await expect(lastOf(700)).rejects.toThrow('which the event log does not have there');
});

test('the end that was found is that of its tree', async () => {
  const find = finder();
  const head = await headOf(700);
  await find(head);
  state.last = EVENTS[500]!;
  expect((await find(head)).last).toMatchObject(endAt(699));
  await expect(find({ ...head, treeId: 'another' })).rejects.toThrow(
    'is not that of its last leaf',
  );
});

test('ends that are looked for at the same time, and earlier ones, are found', async () => {
  const find = finder();
  const [late, early] = [await headOf(700), await headOf(600)];
  const ends = await Promise.all([find(late), find(late), find(early)]);
  expect(ends.map(({ last }) => last)).toMatchObject([endAt(699), endAt(699), endAt(599)]);
  expect((await find(late)).last).toMatchObject(endAt(699));
  expect((await find(early)).last).toMatchObject(endAt(599));
});

test('a state that names an event which was moved to an earlier place is refused', async () => {
  const [moved, last] = [EVENTS[600]!, EVENTS[699]!];
  const isEarly = { ...last, position: moved.position };
  const isLate = { ...moved, position: last.position };
  state.last = isEarly;
  for (const late of [isLate, { ...isLate, metadata: '{}' }]) {
    log = EVENTS.with(600, isEarly).with(699, late);
    await expect(lastOf(700)).rejects.toThrow('which the event log does not have there');
  }
  // Only its id was taken.
  log = EVENTS.with(600, { ...moved, id: last.id });
  await expect(lastOf(700)).rejects.toThrow('which the event log does not have there');
  // Before the last bundle.
  state.last = { ...last, position: EVENTS[300]!.position };
  log = EVENTS.with(300, { ...last, position: EVENTS[300]!.position });
  await expect(lastOf(700)).rejects.toThrow('which the event log does not have there');
});

test.each([
  ['was changed', (at: number) => EVENTS.with(at, { ...EVENTS[at]!, metadata: '{}' })],
  ['was deleted', (at: number) => EVENTS.toSpliced(at, 1)],
  [
    'was inserted before',
    (at: number) => {
      const before = EVENTS[at]!;
      const position = `${EVENTS[at - 1]!.position}.5` as Position;
      return EVENTS.toSpliced(at, 0, { ...before, id: 'forged', position, metadata: '{}' });
    },
  ],
])('an event that %s does not hide the end', async (_what, change) => {
  for (const at of [513, 600, 698]) {
    log = change(at);
    expect(await lastOf(700)).toMatchObject(endAt(699));
    state.size = 701;
    if (at < 600) expect(await lastOf(600)).toMatchObject(endAt(599));
    state.size = 700;
  }
});

test.each([511, 699])('event %i, changed in its place, does not hide the end', async (at) => {
  log = EVENTS.with(at, { ...EVENTS[at]!, metadata: '{}' });
  expect(await lastOf(700)).toMatchObject(endAt(699));
});

test('many events that were inserted do not hide the end', async () => {
  const others = Array.from({ length: 40 }, (_, at) => ({
    ...EVENTS[600]!,
    id: `forged-${at}`,
    metadata: '{}',
    position: `${EVENTS[600]!.position}.${at + 10}` as Position,
  }));
  log = EVENTS.toSpliced(601, 0, ...others);
  expect(await lastOf(700)).toMatchObject(endAt(699));
});

test('events of other programs, which have no hash, do not hide the end', async () => {
  const foreign = EVENTS.map((event, at) =>
    at % 50 === 48 ? { ...event, metadata: '{}' } : event,
  );
  const tree = await treeOfLog(foreign, [700]);
  const ofTree = {
    ...(await headOf(700)),
    ...tree.heads[0]!,
    root: Buffer.from(tree.heads[0]!.root),
  };
  const head = {
    ...ofTree,
    reader: { ...ofTree.reader, read: tree.tiles.read, beforeBundle: tree.tiles.beforeBundle },
  };
  log = foreign.toSpliced(550, 1);
  for (const size of [700, 701]) {
    state.size = size;
    expect((await finder()(head)).last).toMatchObject(endAt(699));
  }
});

test.each([511, 512])('event %i, deleted, does not hide the end', async (at) => {
  log = EVENTS.toSpliced(at, 1);
  expect(await lastOf(700)).toMatchObject(endAt(699));
  state.size = 701;
  expect(await lastOf(700)).toMatchObject(endAt(699));
});

test('a state of fewer leaves than were signed is refused', async () => {
  state.size = 599;
  await expect(lastOf(600)).rejects.toThrow('has 599 leaves, and 600 were signed');
});

test('a bundle that begins elsewhere is refused', async () => {
  for (const start of [undefined, checkpointOf(EVENTS[400]!)]) {
    bundles = new Map(start && [[2, start]]);
    await expect(lastOf(600)).rejects.toThrow('does not know where bundle 2 begins');
  }
  bundles = new Map([[2, { ...checkpointOf(EVENTS[511]!), position: EVENTS[400]!.position }]]);
  await expect(lastOf(600)).rejects.toThrow('which the event log does not have there');
});

test('a log without the events of the last leaves is refused', async () => {
  log = EVENTS.slice(0, 512);
  state.size = 701;
  await expect(lastOf(700)).rejects.toThrow('has other events than the last leaves of the 700');
  state.size = 700;
  await expect(lastOf(700)).rejects.toMatchObject({
    code: 'log_changed',
    message: expect.stringContaining('which the event log does not have there') as unknown,
  });
});

test('events may come slowly, but not stop', async () => {
  jest.useFakeTimers();
  let isSilent = false;
  const slow: FixedLog = {
    ...fixedLog(log, 64),
    async *subscribe(options) {
      for await (const batch of fixedLog(log, 64).subscribe(options)) {
        jest.advanceTimersByTime(isSilent ? 10_000 : 9_000);
        if (options.signal.aborted) return;
        yield batch;
      }
    },
  };
  const find = async () => createEndFinder(slow, createSignedLeaves())(await headOf(700));
  expect((await find()).last).toMatchObject(endAt(699));
  isSilent = true;
  await expect(find()).rejects.toMatchObject({ code: 'store_unavailable' });
  jest.useRealTimers();
});

test('the next end is found from the one before, without the index of bundles', async () => {
  const find = finder();
  expect((await find(await headOf(512))).last).toMatchObject(endAt(511));
  expect((await find(await headOf(600))).last).toMatchObject(endAt(599));
  bundles.clear();
  expect((await find(await headOf(700))).last).toMatchObject(endAt(699));
});

test.each(['changed', 'lost'])(
  'leaves whose entries were %s are found all the same',
  async (what) => {
    readTile = async (path) => {
      const bytes = await tiles.read(path);
      if (!bytes || !path.includes('entries')) return bytes;
      if (what === 'lost') return undefined;
      const text = Buffer.from(bytes).toString('latin1');
      const genuine = leafEntry(recordedHash(EVENTS[600]!), 600).toString('latin1');
      const forged = leafEntry('f'.repeat(64), 600).toString('latin1');
      return Buffer.from(text.replace(genuine, forged), 'latin1');
    };
    log = EVENTS.with(600, { ...EVENTS[600]!, metadata: JSON.stringify({ hash: 'f'.repeat(64) }) });
    expect(await lastOf(700)).toMatchObject(endAt(699));
    state.size = 701;
    expect(await lastOf(700)).toMatchObject(endAt(699));
    // The event of that leaf is behind the last one.
    log = [...log, { ...EVENTS[600]!, position: `${EVENTS[699]!.position}.5` as Position }];
    log.splice(550, 1);
    await expect(lastOf(700)).rejects.toThrow('has other events than the last leaves');
    state.size = 700;
    await expect(lastOf(700)).rejects.toThrow('which the event log does not have there');
  },
);
