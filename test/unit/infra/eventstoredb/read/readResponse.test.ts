import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { decodeReadResponse } from '../../../../../infra/eventstoredb/read/readResponse.ts';

const { ReadEvent } = streamsPb.ReadResp;

const decode = (response: streamsPb.ReadResp) =>
  decodeReadResponse(Buffer.from(response.serializeBinary()));

const UINT64 = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
const RECORD = fc.record({
  id: fc.uuid(),
  stream: fc.string({ unit: 'grapheme' }),
  revision: fc.nat(),
  commit: UINT64,
  prepare: UINT64,
  type: fc.string(),
  data: fc.uint8Array(),
  metadata: fc.uint8Array(),
});

/** A response with an event, as a server of any version encodes it. */
function eventResponse(record: typeof RECORD extends fc.Arbitrary<infer Value> ? Value : never) {
  const event = new ReadEvent.RecordedEvent()
    .setId(new sharedPb.UUID().setString(record.id))
    .setStreamIdentifier(new sharedPb.StreamIdentifier().setStreamName(Buffer.from(record.stream)))
    .setStreamRevision(String(record.revision))
    .setPreparePosition(String(record.prepare))
    .setCommitPosition(String(record.commit))
    .setCustomMetadata(record.metadata)
    .setData(record.data);
  event.getMetadataMap().set('type', record.type).set('content-type', 'application/json');
  const read = new ReadEvent().setEvent(event).setCommitPosition(String(record.commit));
  return new streamsPb.ReadResp().setEvent(read);
}

describe('a response of the event store', () => {
  test('has the fields of its event, as the generated classes encode them', () => {
    fc.assert(
      fc.property(RECORD, (record) => {
        const { event } = decode(eventResponse(record));
        expect(event).toMatchObject({
          id: record.id,
          stream: record.stream,
          revision: record.revision,
          attributes: { type: record.type, 'content-type': 'application/json' },
        });
        expect(String(event?.commit)).toBe(String(record.commit));
        expect([...event!.data]).toEqual([...record.data]);
        expect([...event!.metadata]).toEqual([...record.metadata]);
      }),
    );
  });

  test('has both numbers of a checkpoint, also beyond 2^53', () => {
    fc.assert(
      fc.property(UINT64, UINT64, (commit, prepare) => {
        const checkpoint = new streamsPb.ReadResp.Checkpoint()
          .setCommitPosition(String(commit))
          .setPreparePosition(String(prepare));
        const decoded = decode(new streamsPb.ReadResp().setCheckpoint(checkpoint)).checkpoint;
        expect([String(decoded?.commit), String(decoded?.prepare)]).toEqual([
          String(commit),
          String(prepare),
        ]);
      }),
    );
  });

  test('says that a subscription is confirmed or caught up, or that a stream is absent', () => {
    const confirmation = new streamsPb.ReadResp.SubscriptionConfirmation().setSubscriptionId('s');
    expect(decode(new streamsPb.ReadResp().setConfirmation(confirmation))).toEqual({});
    const caughtUp = new streamsPb.ReadResp.CaughtUp();
    expect(decode(new streamsPb.ReadResp().setCaughtUp(caughtUp))).toEqual({ caughtUp: true });
    const absent = new streamsPb.ReadResp.StreamNotFound();
    expect(decode(new streamsPb.ReadResp().setStreamNotFound(absent))).toEqual({
      streamNotFound: true,
    });
  });

  test('has the event and not the link that led to it, and skips fields of later versions', () => {
    const link = new ReadEvent.RecordedEvent().setId(new sharedPb.UUID().setString('link'));
    const response = new streamsPb.ReadResp().setEvent(new ReadEvent().setLink(link));
    expect(decode(response)).toEqual({});
    // Field 100 as a varint, as 8 bytes, as bytes and as 4 bytes, then `caught_up`.
    const later = [0xa0, 6, 0x96, 1, 0xa1, 6, 1, 2, 3, 4, 5, 6, 7, 8, 0xa2, 6, 2, 9, 9, 0xa5, 6];
    const message = Buffer.from([...later, 1, 2, 3, 4, 0x42, 0]);
    expect(decodeReadResponse(message)).toEqual({ caughtUp: true });
  });

  test('that is cut off is an error, wherever it ends', () => {
    const record = {
      id: 'an id',
      stream: 'session-s',
      revision: 7,
      commit: 300n,
      prepare: 300n,
      type: 'happened',
      data: Buffer.from('{}'),
      metadata: Buffer.from('{}'),
    };
    const message = Buffer.from(eventResponse(record).serializeBinary());
    for (let length = 1; length < message.length; length += 1)
      expect(() => decodeReadResponse(message.subarray(0, length))).toThrow(RangeError);
  });
});
