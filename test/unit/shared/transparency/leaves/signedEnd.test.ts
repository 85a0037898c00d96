import { beforeEach, expect, test } from '@jest/globals';
import { createEndFinder } from '../../../../../shared/transparency/leaves/signedEnd.ts';
import { createSignedLeaves } from '../../../../../shared/transparency/leaves/signedLeaves.ts';
import { recordedHash } from '../../../../../shared/transparency/proof/nameChange.ts';
import type { SignedHead } from '../../../../../shared/transparency/ownTree.ts';
import type { Checkpoint, StoredEvent } from '../../../../../shared/ports/eventStore.ts';
import { fixedLog } from '../../../../support/fakes/fixedLog.ts';
import { logOf, treeOfLog } from '../../../../support/fakes/memoryLog.ts';
import { signedTree } from '../../../../support/fakes/ownTree.ts';

const EVENTS = logOf(700);
const { tiles, heads } = await treeOfLog(EVENTS, [100, 512, 600, 700]);
let state: { size: number; last: StoredEvent };
let log: StoredEvent[];
let bundles: Map<number, Checkpoint>;

beforeEach(() => {
  state = { size: 700, last: EVENTS.at(-1)! };
  log = EVENTS;
  bundles = new Map(tiles.bundles);
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
      ...tiles,
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

test('a state that names a changed event is refused where that one was put to an earlier place', async () => {
  const { id } = EVENTS[699]!;
  log = EVENTS.with(500, { ...EVENTS[500]!, id });
  state.last = { ...EVENTS[699]!, position: EVENTS[500]!.position };
  await expect(lastOf(700)).rejects.toThrow('which the event log does not have there');
});

test('a last event that was changed in its place is still the end', async () => {
  log = EVENTS.with(699, { ...EVENTS[699]!, metadata: EVENTS[698]!.metadata });
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

test('a log with other events before the end is refused, and an end that was found before stays', async () => {
  const find = finder();
  const before = await find(await headOf(512));
  log = EVENTS.toSpliced(550, 1);
  await expect(lastOf(600)).rejects.toThrow('has other events than the last leaves of the 600');
  const changing = fixedLog(log);
  const later = createEndFinder(
    { ...fixedLog(EVENTS), subscribe: (options) => changing.subscribe(options) },
    createSignedLeaves(),
  );
  const known = await later(await headOf(512));
  expect(known).toMatchObject({ last: before.last });
  expect(await later(await headOf(600))).toBe(known);
});
