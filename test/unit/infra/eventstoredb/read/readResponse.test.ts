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
          type: record.type,
          isJson: true,
          data: Buffer.from(record.data).toString(),
          metadata: Buffer.from(record.metadata).toString(),
          bytes: record.data.length + record.metadata.length,
        });
        expect(String(event?.commit)).toBe(String(record.commit));
      }),
    );
  });

  test.each([
    ['application/json', true],
    ['application/jsonx', false],
    ['application/octet-stream', false],
    ['', false],
  ])('of content type %p is JSON: %p', (contentType, isJson) => {
    const event = new ReadEvent.RecordedEvent();
    event.getMetadataMap().set('created', '17326').set('content-type', contentType);
    const response = new streamsPb.ReadResp().setEvent(new ReadEvent().setEvent(event));
    expect(decode(response).event).toMatchObject({ type: '', isJson });
  });

  test('has attributes whose value comes first, and may have some without name or value', () => {
    const name = [0x0a, 4, ...Buffer.from('type')];
    const value = [0x12, 8, ...Buffer.from('happened')];
    const message = (...entries: readonly number[][]): Buffer => {
      const event = entries.flatMap((entry) => [0x32, entry.length, ...entry]);
      const read = [0x0a, event.length, ...event];
      return Buffer.from([0x0a, read.length, ...read]);
    };
    const typeOf = (...entries: readonly number[][]) =>
      decodeReadResponse(message(...entries)).event?.type;
    expect(typeOf([...value, ...name], value, [])).toBe('happened');
    expect(typeOf([...name, ...value], name)).toBe('happened');
    expect(typeOf(value)).toBe('');
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
