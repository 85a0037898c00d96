import { createHash } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { chainEvents, NO_STREAM } from '../../../../shared/eventlog/append.ts';
import { canonicalJson } from '../../../../shared/eventlog/canonicalJson.ts';
import { decodeEvent } from '../../../../shared/eventlog/codec.ts';
import { findChainFault, GENESIS_HASH } from '../../../../shared/eventlog/hashChain.ts';
import type { RecordedEvent } from '../../../../shared/eventlog/event.ts';
import type { Position } from '../../../../shared/ports/eventStore.ts';
import { textOf } from '../../../support/docs/projectFiles.ts';

const authorship = {
  account_id: 'acct_1',
  key_id: 'key_1',
  request_id: 'r',
  causation_id: 'c',
  recorded_at: '2026-11-20T10:00:00.000Z',
};
const stream = 'session-1';

const chained = (data: readonly object[], after = NO_STREAM): RecordedEvent[] =>
  chainEvents(
    stream,
    after,
    data.map((value, index) => ({ id: `id-${index}`, type: 't.v1', data: value })),
    authorship,
  ).encoded.map((event, revision) =>
    decodeEvent({ ...event, stream, revision, position: String(revision) as Position }),
  );

const firstFault = (events: readonly RecordedEvent[]): number | undefined => {
  let previous: { revision: number; hash: string } | undefined;
  for (const [index, event] of events.entries()) {
    if (findChainFault(event, previous) !== undefined) return index;
    previous = { revision: event.revision, hash: event.metadata.hash };
  }
  return undefined;
};

const json = fc.dictionary(
  fc.string({ unit: 'grapheme' }),
  fc.jsonValue({ stringUnit: 'grapheme' }),
);

describe('the hash chain', () => {
  test('is sha256(prev_hash ‖ JCS(event without prev_hash and hash)), as DESIGN states it', () => {
    const [first, second] = chained([{ b: 1, a: 'ö' }, { n: 1e21 }]);
    const expected = ({ id, revision, type, data }: RecordedEvent, previous: string) =>
      createHash('sha256')
        .update(
          previous + canonicalJson({ id, stream, revision, type, data, metadata: authorship }),
        )
        .digest('hex');
    expect(first!.metadata).toEqual({
      ...authorship,
      prev_hash: GENESIS_HASH,
      hash: expected(first!, GENESIS_HASH),
    });
    expect(second!.metadata.prev_hash).toBe(first!.metadata.hash);
    expect(second!.metadata.hash).toBe(expected(second!, first!.metadata.hash));
  });

  test('fits the event that README.md shows', () => {
    const [shown] = /\{"id":.*"prev_hash":.*?\}\}/.exec(textOf('README.md'))!;
    expect(findChainFault(JSON.parse(shown) as RecordedEvent, undefined)).toBeUndefined();
  });

  test('verifies whatever the data is', () => {
    fc.assert(
      fc.property(fc.array(json, { maxLength: 6 }), (data) =>
        expect(firstFault(chained(data))).toBeUndefined(),
      ),
    );
  });

  test('notices an event that was taken out or moved', () => {
    const events = chained([{ n: 0 }, { n: 1 }, { n: 2 }]);
    expect(firstFault([events[0]!, events[2]!])).toBe(1);
    expect(firstFault([events[1]!, events[2]!])).toBe(0);
    expect(firstFault([events[0]!, events[2]!, events[1]!])).toBe(1);
  });

  test('notices a first event that names an event before it', () => {
    expect(firstFault(chained([{ n: 0 }], { ...NO_STREAM, hash: 'f'.repeat(64) }))).toBe(0);
  });
});
