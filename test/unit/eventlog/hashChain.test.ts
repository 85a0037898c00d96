import { createHash } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { chainEvents, NO_STREAM } from '../../../shared/eventlog/append.ts';
import { canonicalJson } from '../../../shared/eventlog/canonicalJson.ts';
import { decodeEvent } from '../../../shared/eventlog/codec.ts';
import { chainFault, GENESIS_HASH } from '../../../shared/eventlog/hashChain.ts';
import type { RecordedEvent } from '../../../shared/eventlog/event.ts';
import type { Position } from '../../../shared/ports/eventStore.ts';

const authorship = {
  account_id: 'acct_1',
  key_id: 'key_1',
  request_id: 'r',
  causation_id: 'c',
  recorded_at: '2026-11-20T10:00:00.000Z',
};
const stream = 'session-1';

const chained = (data: readonly object[]): RecordedEvent[] =>
  chainEvents(
    stream,
    NO_STREAM,
    data.map((value, index) => ({ id: `id-${index}`, type: 't.v1', data: value })),
    authorship,
  ).encoded.map((event, revision) =>
    decodeEvent({ ...event, stream, revision, position: String(revision) as Position }),
  );

const firstFault = (events: readonly RecordedEvent[]): number | undefined => {
  let previous: { revision: number; hash: string } | undefined;
  for (const [index, event] of events.entries()) {
    if (chainFault(event, previous) !== undefined) return index;
    previous = { revision: event.revision, hash: event.metadata.hash };
  }
  return undefined;
};

const json = fc.dictionary(
  fc.string({ unit: 'grapheme' }),
  fc.jsonValue({ stringUnit: 'grapheme' }),
);

describe('the hash chain', () => {
  test('is sha256(prev_hash ‖ JCS({id, stream, revision, type, data, account_id, recorded_at})), as DESIGN states it', () => {
    const [first, second] = chained([{ b: 1, a: 'ö' }, { n: 1e21 }]);
    const expected = (event: RecordedEvent, previous: string) => {
      const { id, revision, type, data } = event;
      return createHash('sha256')
        .update(
          previous +
            canonicalJson({
              id,
              stream,
              revision,
              type,
              data,
              account_id: authorship.account_id,
              recorded_at: authorship.recorded_at,
            }),
        )
        .digest('hex');
    };
    expect(first!.metadata).toEqual({
      ...authorship,
      prev_hash: GENESIS_HASH,
      hash: expected(first!, GENESIS_HASH),
    });
    expect(second!.metadata.prev_hash).toBe(first!.metadata.hash);
    expect(second!.metadata.hash).toBe(expected(second!, first!.metadata.hash));
  });

  test('verifies whatever the data is', () => {
    fc.assert(
      fc.property(fc.array(json, { maxLength: 6 }), (data) =>
        expect(firstFault(chained(data))).toBeUndefined(),
      ),
    );
  });

  const tamperings: Array<[string, (event: RecordedEvent) => RecordedEvent]> = [
    ['its data', (event) => ({ ...event, data: { ...(event.data as object), tampered: true } })],
    ['its type', (event) => ({ ...event, type: 'other.v1' })],
    ['its id', (event) => ({ ...event, id: 'other' })],
    ['its stream', (event) => ({ ...event, stream: 'session-2' })],
    [
      'its account',
      (event) => ({ ...event, metadata: { ...event.metadata, account_id: 'acct_2' } }),
    ],
    [
      'its time',
      (event) => ({
        ...event,
        metadata: { ...event.metadata, recorded_at: '2026-11-20T10:00:00.001Z' },
      }),
    ],
    ['its hash', (event) => ({ ...event, metadata: { ...event.metadata, hash: GENESIS_HASH } })],
    ['its revision', (event) => ({ ...event, revision: event.revision + 1 })],
  ];
  test.each(tamperings)('names the first event that was changed in %s', (_what, tamper) => {
    fc.assert(
      fc.property(fc.array(json, { minLength: 1, maxLength: 6 }), fc.nat(), (data, pick) => {
        const events = chained(data);
        const index = pick % events.length;
        events[index] = tamper(events[index]!);
        expect(firstFault(events)).toBe(index);
      }),
    );
  });

  test('notices an event that was taken out or moved', () => {
    const events = chained([{ n: 0 }, { n: 1 }, { n: 2 }]);
    expect(firstFault([events[0]!, events[2]!])).toBe(1);
    expect(firstFault([events[1]!, events[2]!])).toBe(0);
    expect(firstFault([events[0]!, events[2]!, events[1]!])).toBe(1);
  });
});
