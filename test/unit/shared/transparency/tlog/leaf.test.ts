import { expect, test } from '@jest/globals';
import { sha256 } from '../../../../../shared/eventlog/hashChain.ts';
import type { Checkpoint, Position } from '../../../../../shared/ports/eventStore.ts';
import {
  createLeafFinder,
  leafEntry,
  findLeafIndex,
  parseLeafEntry,
} from '../../../../../shared/transparency/tlog/leaf.ts';
import { openRightEdge } from '../../../../../shared/transparency/tlog/rightEdge.ts';
import {
  entriesOf,
  encodeEntry,
  parseTilePath,
  TILE_WIDTH,
} from '../../../../../shared/transparency/tlog/tiles.ts';
import { memoryTiles } from '../../../../support/fakes/memoryTiles.ts';

const hashOf = (index: number): string => sha256(`event ${index}`);
/** With gaps, as positions have them. */
const positionOf = (index: number): Position => String(index * 3).padStart(12, '0') as Position;

async function logOf(count: number) {
  const tiles = memoryTiles();
  const edge = await openRightEdge(tiles, 0);
  for (let at = 0; at < count; at += 1) edge.append(leafEntry(hashOf(at), at));
  tiles.write(edge.takeFiles());
  let reads = 0;
  const beforeBundle = async (bundle: number): Promise<Checkpoint | undefined> => {
    reads += 1;
    const last = bundle * TILE_WIDTH - 1;
    const position = positionOf(last);
    return { log_id: 'log', position, event_id: String(last), event_hash: hashOf(last) };
  };
  return { reader: { read: tiles.read, beforeBundle }, reads: () => reads };
}

test('the leaf of each event is found by its position and its hash', async () => {
  const count = 1_300;
  const { reader } = await logOf(count);
  for (const index of [0, 1, 255, 256, 257, 511, 512, 1_023, 1_024, 1_299]) {
    const event = { position: positionOf(index), hash: hashOf(index) };
    expect(await findLeafIndex(reader, event, count)).toBe(index);
  }
});

test('an event that has no leaf yet, or another hash, has no index', async () => {
  const { reader } = await logOf(600);
  const at = (index: number, hash = hashOf(index)) =>
    findLeafIndex(reader, { position: positionOf(index), hash }, 600);
  expect(await at(600)).toBeUndefined();
  expect(await at(10, hashOf(11_000))).toBeUndefined();
  expect(await at(10, '')).toBeUndefined();
  expect(
    await findLeafIndex(reader, { position: positionOf(1), hash: hashOf(1) }, 0),
  ).toBeUndefined();
});

test('it is found with a look at one place for each halving', async () => {
  const { reader, reads } = await logOf(40 * TILE_WIDTH);
  const event = { position: positionOf(9_000), hash: hashOf(9_000) };
  expect(await findLeafIndex(reader, event, 40 * TILE_WIDTH)).toBe(9_000);
  expect(reads()).toBeLessThanOrEqual(6);
});

test('leaves are found one after the other as each by itself, with one look for each bundle', async () => {
  const count = 1_300;
  const { reader, reads } = await logOf(count);
  const eventAt = (index: number, hash = hashOf(index)) => ({ position: positionOf(index), hash });
  const dense = Array.from({ length: 600 }, (_, index) => eventAt(index));
  const sparse = [
    eventAt(700, hashOf(11_000)),
    ...[701, 767, 768].map((index) => eventAt(index)),
    // Its position is before the bundle of the leaf before, and then after it.
    eventAt(3, hashOf(800)),
    eventAt(801),
    eventAt(1_100, hashOf(802)),
    ...[1_279, 1_280, 1_299, 3].map((index) => eventAt(index)),
    eventAt(4, ''),
  ];
  const find = createLeafFinder(reader, count);
  for (const event of dense) expect(await find(event)).toBe(dense.indexOf(event));
  expect(reads()).toBeLessThanOrEqual(12);
  for (const event of sparse)
    expect(await find(event)).toBe(await findLeafIndex(reader, event, count));
  expect(await find(eventAt(900))).toBe(900);
});

test('a leaf is canonical JSON, and names nobody', () => {
  expect(leafEntry(hashOf(1), 7).toString()).toBe(`{"hash":"${hashOf(1)}","index":7}`);
  expect(leafEntry('"}, a person', 7).toString()).toBe('{"hash":"","index":7}');
  expect(parseLeafEntry(leafEntry(hashOf(1), 7))).toEqual({ hash: hashOf(1), index: 7 });
  expect(() => parseLeafEntry(Buffer.from('{"hash":"","index":07}'))).toThrow();
});

test.each([
  ['one entry too few', Buffer.concat([encodeEntry(Buffer.from('a'))]), 2],
  [
    'one too many',
    Buffer.concat([encodeEntry(Buffer.from('a')), encodeEntry(Buffer.from('b'))]),
    1,
  ],
  ['a cut entry', encodeEntry(Buffer.from('abc')).subarray(0, 4), 1],
  ['a byte behind', Buffer.concat([encodeEntry(Buffer.from('a')), Buffer.of(0)]), 1],
])('a bundle with %s is refused', (_, bundle, width) => {
  expect(() => entriesOf(bundle, width)).toThrow(
    expect.objectContaining({ code: 'proof_invalid' }),
  );
});

test('an entry is up to 65,535 bytes long', () => {
  expect(entriesOf(encodeEntry(Buffer.alloc(0xffff)), 1)[0]).toHaveLength(0xffff);
  expect(() => encodeEntry(Buffer.alloc(0x10000))).toThrow(RangeError);
});

test.each([
  'tile/0/1',
  'tile/0/0001',
  'tile/00/001',
  'tile/64/001',
  'tile/0/001.p/0',
  'tile/0/001.p/256',
  'tile/0/001.p/01',
  'tile/0/x000/001',
  'tile/0/x001/x001',
  'tile/0/../001',
  'tile/0/001/',
  'tile/x/001',
  'tile/0/x999/x999/x999/x999/x999/999',
  '/tile/0/001',
  'tile/0/001\n',
])('%j is no path of a tile', (path) => {
  expect(parseTilePath(path)).toBeUndefined();
});
