import anyPb from 'google-protobuf/google/protobuf/any_pb.js';
import emptyPb from 'google-protobuf/google/protobuf/empty_pb.js';
import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import statusPb from '@eventstore/db-client/generated/status_pb.js';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  decodeAppendResponse,
  encodeAppendRequest,
  type AppendRequest,
} from '../../../../../infra/eventstoredb/append/appendMessages.ts';

const UINT64 = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
const TEXT = fc.string({ unit: 'grapheme', maxLength: 300 });
const APPEND: fc.Arbitrary<AppendRequest> = fc.record({
  stream: TEXT,
  expected: fc.oneof(fc.constant('no_stream' as const), fc.nat(), fc.maxSafeNat()),
  events: fc.array(fc.record({ id: fc.uuid(), type: TEXT, data: TEXT, metadata: TEXT }), {
    maxLength: 5,
  }),
});

/** The append as the generated classes decode it. */
function decodedByLibrary(message: Buffer) {
  const request = streamsPb.BatchAppendReq.deserializeBinary(message);
  const options = request.getOptions()!;
  return {
    correlationId: request.getCorrelationId()?.getString(),
    stream: Buffer.from(options.getStreamIdentifier()!.getStreamName_asU8()).toString(),
    expected: options.hasNoStream() ? 'no_stream' : Number(options.getStreamPosition()),
    hasPosition: options.hasStreamPosition(),
    isFinal: request.getIsFinal(),
    events: request.getProposedMessagesList().map((event) => ({
      id: event.getId()?.getString(),
      attributes: Object.fromEntries(event.getMetadataMap().getEntryList()),
      data: Buffer.from(event.getData_asU8()).toString(),
      metadata: Buffer.from(event.getCustomMetadata_asU8()).toString(),
    })),
  };
}

const decode = (response: streamsPb.BatchAppendResp) =>
  decodeAppendResponse(Buffer.from(response.serializeBinary()));
const outcomeOf = (response: streamsPb.BatchAppendResp) => decode(response).outcome;

const newResponse = (): streamsPb.BatchAppendResp =>
  new streamsPb.BatchAppendResp()
    .setCorrelationId(new sharedPb.UUID().setString('an id'))
    .setStreamIdentifier(new sharedPb.StreamIdentifier().setStreamName(Buffer.from('session-s')))
    .setStreamPosition('7');

function refusal(name: string, message = name): streamsPb.BatchAppendResp {
  const details = new anyPb.Any();
  details.pack(new sharedPb.BadRequest().setMessage('details').serializeBinary(), name);
  return newResponse().setError(
    new statusPb.Status().setCode(3).setMessage(message).setDetails(details),
  );
}

describe('a request to append', () => {
  test('says to the generated classes what was asked for', () => {
    fc.assert(
      fc.property(APPEND, fc.uuid(), (append, correlationId) => {
        expect(decodedByLibrary(encodeAppendRequest(append, correlationId))).toEqual({
          correlationId,
          stream: append.stream,
          expected: append.expected,
          hasPosition: append.expected !== 'no_stream',
          isFinal: true,
          events: append.events.map(({ id, type, data, metadata }) => ({
            id,
            attributes: { type, 'content-type': 'application/json' },
            data,
            metadata,
          })),
        });
      }),
    );
  });

  test.each([0x7f, 0x80, 0x3fff, 0x4000, 0x1fffff, 0x200000])(
    'has data of %d bytes, where lengths take another byte',
    (length) => {
      const data = 'é'.repeat(length / 2) + 'x'.repeat(length % 2);
      const events = [{ id: 'an id', type: 'happened', data, metadata: '{}' }];
      const message = encodeAppendRequest({ stream: 's', expected: length, events }, 'id');
      const decoded = decodedByLibrary(message);
      expect([decoded.events[0]?.data === data, decoded.expected]).toEqual([true, length]);
    },
  );

  test('has a replacement character for half of a surrogate pair, as UTF-8 has none', () => {
    const events = [{ id: 'an id', type: 'happened', data: '"\ud83d"', metadata: '{}' }];
    const message = encodeAppendRequest({ stream: 's', expected: 0, events }, 'id');
    expect(decodedByLibrary(message).events[0]?.data).toBe('"\ufffd"');
  });
});

describe('a response to an append', () => {
  test('has revision and position, also beyond 2^53', () => {
    fc.assert(
      fc.property(fc.maxSafeNat(), UINT64, (revision, commit) => {
        const position = new sharedPb.AllStreamPosition()
          .setCommitPosition(String(commit))
          .setPreparePosition('1');
        const success = new streamsPb.BatchAppendResp.Success()
          .setCurrentRevision(String(revision))
          .setPosition(position);
        const response = newResponse().setSuccess(success);
        expect(decode(response).correlationId).toBe('an id');
        const answer = outcomeOf(response);
        expect(answer).toMatchObject({ kind: 'written', revision });
        expect(answer.kind === 'written' && String(answer.commit)).toBe(String(commit));
      }),
    );
  });

  test('may lack the position, when the append was a repeated one', () => {
    const success = new streamsPb.BatchAppendResp.Success()
      .setCurrentRevision('4')
      .setNoPosition(new emptyPb.Empty());
    const written = { kind: 'written', revision: 4, commit: undefined };
    expect(outcomeOf(newResponse().setSuccess(success))).toEqual(written);
  });

  test.each([
    ['WrongExpectedVersion', { kind: 'conflict' }],
    ['StreamDeleted', { kind: 'conflict' }],
    ['MaximumAppendSizeExceeded', { kind: 'rejected', reason: 'why' }],
    ['MaximumAppendEventSizeExceeded', { kind: 'rejected', reason: 'why' }],
    ['BadRequest', { kind: 'rejected', reason: 'why' }],
  ])('reports that nothing was written: %s', (name, answer) => {
    expect(outcomeOf(refusal(`event_store.client.${name}`, 'why'))).toEqual(answer);
  });

  test.each([
    ['event_store.client.AccessDenied', { kind: 'access_denied' }],
    ['event_store.client.Timeout', { kind: 'unknown', reason: 'event_store.client.Timeout why' }],
    ['event_store.client.Other', { kind: 'unknown', reason: 'event_store.client.Other why' }],
  ])('may be no answer: %s', (name, outcome) => {
    expect(outcomeOf(refusal(name, 'why'))).toEqual(outcome);
  });

  test('reports that the node is not ready, by its message alone', () => {
    const response = refusal('google.protobuf.Empty', 'Server Is Not Ready');
    expect(outcomeOf(response)).toEqual({ kind: 'not_ready' });
  });

  test('that is empty leaves the outcome open', () => {
    expect(outcomeOf(newResponse())).toMatchObject({ kind: 'unknown' });
  });

  test('that is cut off is an error, wherever it ends', () => {
    const error = refusal('event_store.client.BadRequest', 'why').getError();
    const response = new streamsPb.BatchAppendResp().setError(error);
    const message = Buffer.from(response.serializeBinary());
    for (let length = 1; length < message.length; length += 1)
      expect(() => decodeAppendResponse(message.subarray(0, length))).toThrow(RangeError);
  });
});
