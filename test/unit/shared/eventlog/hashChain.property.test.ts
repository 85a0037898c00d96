/** What `audit verify` does not decode: nothing may fit that way and not the other. */
import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { canonicalJson } from '../../../../shared/eventlog/canonicalJson.ts';
import { decodeEvent } from '../../../../shared/eventlog/codec.ts';
import {
  findChainFault,
  GENESIS_HASH,
  sha256,
  eventHash,
  writtenHash,
  type Link,
} from '../../../../shared/eventlog/hashChain.ts';
import { withoutBoxes } from '../../../support/builders/chainStored.ts';
import type { Position, StoredEvent } from '../../../../shared/ports/eventStore.ts';
import { size } from '../../../support/jest/size.ts';
import { AUTHORSHIP } from '../../../support/builders/authorship.ts';

const RUNS = { numRuns: size({ small: 3_000, full: 200_000 }) };

const A = 'a'.repeat(64);
const BOX = `${'k'.repeat(16)}.${'A'.repeat(60)}`;

/** What an enemy puts into a text: what readers may take in two ways. */
const pieces = fc.oneof(
  fc.string({ maxLength: 3 }),
  fc.constantFrom(
    '"',
    '\\',
    '\\"',
    '{',
    '}',
    '[',
    ']',
    ':',
    ',',
    ' ',
    '\n',
    '\u0000',
    '\ud800',
    '\u007f',

    '1.0',
    '-0',
    '1e2',
    '1e+21',
    '0x1',
    'true',
    'null',
    '"a":1,',
    '"é":1,',
    ',"a":2',
    '"sha256":1',

    `"sha256":"${A}"`,
    `{"sha256":"${A}"}`,
    `"box":"${BOX}",`,
    `{"box":"${BOX}","sha256":"${A}"}`,

    `{"box":"${BOX}","salt":"","sha256":"${A}"}`,
    `"erased":true,`,
    `,"salt":"x"`,
    '"__proto__":{},',
    `{"sha256":"${A}","text":"b"}`,
    '"toJSON":1,',
    `"hash":"${A}",`,
    '\\u0061',
    '\ufeff',
  ),
);

const text = fc.stringMatching(/^[a-zé"]{0,4}$/u);
const shown = fc.constantFrom<object>(
  { sha256: A },
  { sha256: A, box: BOX },
  { sha256: A, box: 'none' },
  { sha256: A, erased: true },
  { sha256: 'A' },
);
const { data } = fc.letrec((tie) => ({
  data: fc.dictionary(text, tie('value'), { maxKeys: 4 }),
  value: fc.oneof(
    { depthSize: 'small' },
    text,
    shown,
    fc.double(),
    fc.constantFrom(true, null),
    fc.array(tie('value'), { maxLength: 3 }),
    tie('data'),
  ),
}));

interface Change {
  at: number;
  put: string;
  instead: number;
}
const change: fc.Arbitrary<Change> = fc.record({
  at: fc.oneof(fc.nat(2_000), fc.constant(1)),
  put: pieces,
  instead: fc.nat(3),
});
const changed = (was: string, { at, put, instead }: Change): string => {
  const where = at % (was.length + 1);
  return was.slice(0, where) + put + was.slice(where + instead);
};
/** Few: what was changed in many places fits in no way. */
const seldom = (most: number) =>
  fc.oneof(fc.constant([]), fc.array(change, { minLength: 1, maxLength: most }));
const all = (was: string, changes: readonly Change[]): string => changes.reduce(changed, was);

/** In canonical form, with what JSON does not have as null. */
const canonicalOf = (value: unknown): string => canonicalJson(JSON.parse(JSON.stringify(value)));

/**
 * An event as an enemy stores it who recomputes hashes: over the texts as they stand there, which is
 * what the quick way takes.
 */
const forged = fc
  .record({
    data: fc.tuple(data, seldom(3)),
    metadata: seldom(1),
    column: fc.constantFrom('id', 'stream', 'type', 'none', 'none', 'none'),
    put: pieces,
    revision: fc.constantFrom(0, 0, 0, 0, 0, 0, 1, 0.5),
    /** What the hash covers: the text without its boxes, or the one that is stored. */
    covers: fc.constantFrom(withoutBoxes, withoutBoxes, (stored: string) => stored),
  })
  .map(({ covers, column, put, revision, ...one }): StoredEvent => {
    const event = { id: 'id', stream: 'test-1', type: 't.v1', revision };
    if (column !== 'none') event[column] += put;
    const stored = all(canonicalOf(one.data[0]), one.data[1]);
    const authorship = all(
      Object.entries(AUTHORSHIP)
        .map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`)
        .join(','),
      one.metadata,
    );
    const members = authorship.split(',').toSorted().join(',');
    const covered = `{"data":${covers(stored)},"id":${JSON.stringify(event.id)},"metadata":{${members}},"revision":${revision},"stream":${JSON.stringify(event.stream)},"type":${JSON.stringify(event.type)}}`;
    const hash = sha256(GENESIS_HASH + covered);
    const metadata = `{${authorship},"prev_hash":"${GENESIS_HASH}","hash":"${hash}"}`;
    return { ...event, data: stored, metadata, position: '1' as Position };
  });

const PREVIOUS: Array<Link | undefined> = [
  undefined,
  undefined,
  undefined,
  { revision: 0, hash: GENESIS_HASH },
];

/** What the way by way of decoding finds; undefined where all fits. */
function decodedFault(event: StoredEvent, previous: Link | undefined): string | undefined {
  try {
    return findChainFault(decodeEvent(event), previous);
  } catch (error) {
    return String(error);
  }
}

/** What the quick way finds; undefined where it leaves the event to the other one. */
function hashUndecoded(event: StoredEvent, previous: Link | undefined): string | undefined {
  try {
    return writtenHash(event, previous);
  } catch {
    // A lone surrogate in an id: the chain checker says that it can't be decoded.
    return undefined;
  }
}

test('no event fits undecoded that does not fit decoded', () => {
  let fitting = 0;
  fc.assert(
    fc.property(forged, fc.constantFrom(...PREVIOUS), (event, previous) => {
      const hash = hashUndecoded(event, previous);
      if (hash === undefined) return;
      fitting += 1;
      expect(decodedFault(event, previous)).toBeUndefined();
      expect(decodeEvent(event).metadata.hash).toBe(hash);
    }),
    RUNS,
  );
  // Without events that pass, nothing would have been compared.
  expect(fitting).toBeGreaterThan(RUNS.numRuns / 100);
});

test('a previous hash with quotes does not pass for several members', () => {
  const quoted = `${'b'.repeat(30)}","note":"`.padEnd(64, 'c');
  const members = { account_id: 'a', key_id: 'k', request_id: 'r', causation_id: 'c' };
  const known = { ...members, recorded_at: '2026-01-01T00:00:00.000Z' };
  const event = { id: 'e', stream: 's', revision: 1, type: 't', data: '{}' };
  const hash = eventHash(quoted, { ...event, metadata: canonicalJson(known) });
  const metadata = `${JSON.stringify(known).slice(0, -1)},"prev_hash":"${quoted}","hash":"${hash}"}`;
  const stored = { ...event, metadata, position: '1' as Position };
  expect(JSON.parse(metadata)).toHaveProperty('note');
  expect(writtenHash(stored, { revision: 0, hash: quoted })).toBeUndefined();
});
