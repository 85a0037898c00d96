import grpc from '@grpc/grpc-js';
import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import statusPb from '@eventstore/db-client/generated/status_pb.js';
import jspb from 'google-protobuf';
import anyPb from 'google-protobuf/google/protobuf/any_pb.js';
import emptyPb from 'google-protobuf/google/protobuf/empty_pb.js';
import type { Excess } from './appendSize.ts';
import type { Expected, Refusal } from './types.ts';

/**
 * How a call fails: a gRPC status with the trailers that clients tell errors apart by
 * (`RpcExceptions` in EventStore.Core).
 */
export interface WireError {
  code: grpc.status;
  details: string;
  metadata?: grpc.Metadata;
}

function wireError(
  code: grpc.status,
  details: string,
  trailers: Record<string, string> = {},
): WireError {
  const metadata = new grpc.Metadata();
  for (const [name, value] of Object.entries(trailers)) metadata.set(name, value);
  return { code, details, metadata };
}

export const unavailable = (): WireError =>
  wireError(grpc.status.UNAVAILABLE, 'Server Is Not Ready');

export const notLeader = (leader: { host: string; port: number }): WireError =>
  wireError(grpc.status.NOT_FOUND, 'Leader info available', {
    exception: 'not-leader',
    'leader-endpoint-host': leader.host,
    'leader-endpoint-port': String(leader.port),
  });

export const timedOut = (): WireError => wireError(grpc.status.ABORTED, 'Operation timed out');

export const accessDenied = (): WireError =>
  wireError(grpc.status.PERMISSION_DENIED, 'Access Denied', { exception: 'access-denied' });

export const unauthenticated = (): WireError =>
  wireError(grpc.status.UNAUTHENTICATED, 'Unauthenticated');

/** What a server answers when a handler of it failed in a way that it did not foresee. */
export const thrownByHandler = (): WireError =>
  wireError(grpc.status.UNKNOWN, 'Exception was thrown by handler.');

/** A read that failed: the kind of its result, the result, and why, if the version tells. */
export const unexpectedResult = (
  kind: string,
  result: string,
  reason: string | undefined,
): WireError =>
  wireError(
    grpc.status.UNKNOWN,
    `Unexpected ${kind}: ${result}${reason === undefined ? '' : ` >> ${reason}`}`,
  );

export const invalidPosition = (): WireError =>
  invalidArgument('Trying to read from an invalid position.');

export const consumerTooSlow = (): WireError =>
  wireError(
    grpc.status.ABORTED,
    'Operation timed out: Consumer too slow to handle event while live. Client resubscription required.',
  );

export const invalidArgument = (details: string): WireError =>
  wireError(grpc.status.INVALID_ARGUMENT, details);

export const streamDeleted = (stream: string): WireError =>
  wireError(grpc.status.FAILED_PRECONDITION, `Event stream '${stream}' is deleted.`, {
    exception: 'stream-deleted',
    'stream-name': stream,
  });

export const appendTooLarge = (excess: Excess): WireError =>
  excess.kind === 'append'
    ? wireError(grpc.status.INVALID_ARGUMENT, `Maximum Append Size of ${excess.limit} Exceeded.`, {
        exception: 'maximum-append-size-exceeded',
        'maximum-append-size': String(excess.limit),
      })
    : wireError(
        grpc.status.INVALID_ARGUMENT,
        `Event with Id: ${excess.id}, Size: ${excess.size}, exceeds Maximum Append Event Size of ${excess.limit}.`,
        {
          exception: 'maximum-append-event-size-exceeded',
          'maximum-append-event-size': String(excess.limit),
          'event-id': excess.id,
          'proposed-append-event-size': String(excess.size),
        },
      );

/**
 * Numbers that stand for an expectation without a revision (`ExpectedVersion` in EventStore.Core).
 */
const EXPECTATION_NUMBERS = { no_stream: -1n, any: -2n, stream_exists: -4n };

export const wrongExpectedVersion = (
  stream: string,
  expected: Expected,
  current: bigint,
): WireError =>
  wireError(
    grpc.status.FAILED_PRECONDITION,
    `Append failed due to WrongExpectedVersion. Stream: ${stream}`,
    {
      exception: 'wrong-expected-version',
      'stream-name': stream,
      'expected-version': String(
        typeof expected === 'bigint' ? expected : EXPECTATION_NUMBERS[expected],
      ),
      'actual-version': String(current),
    },
  );

/**
 * The same refusals as BatchAppend tells them: in band, as a `google.rpc.Status` whose details name
 * the kind.
 */
function inBand(
  code: number,
  typeName: string,
  message: { serializeBinary(): Uint8Array },
): statusPb.Status {
  const details = new anyPb.Any();
  details.pack(message.serializeBinary(), `event_store.client.${typeName}`);
  return new statusPb.Status().setCode(code).setMessage(typeName).setDetails(details);
}

export function refusalStatus(
  refusal: Refusal,
  stream: string,
  expected: Expected,
): statusPb.Status {
  if (refusal.kind === 'deleted') {
    const identifier = new sharedPb.StreamIdentifier().setStreamName(
      Buffer.from(stream).toString('base64'),
    );
    return inBand(
      grpc.status.NOT_FOUND,
      'StreamDeleted',
      new sharedPb.StreamDeleted().setStreamIdentifier(identifier),
    );
  }
  const message = new sharedPb.WrongExpectedVersion();
  if (refusal.current < 0n) message.setCurrentNoStream(new emptyPb.Empty());
  else message.setCurrentStreamRevision(String(refusal.current));
  if (typeof expected === 'bigint') message.setExpectedStreamPosition(String(expected));
  else if (expected === 'no_stream') message.setExpectedNoStream(new emptyPb.Empty());
  else if (expected === 'any') message.setExpectedAny(new emptyPb.Empty());
  else message.setExpectedStreamExists(new emptyPb.Empty());
  return inBand(grpc.status.ALREADY_EXISTS, 'WrongExpectedVersion', message);
}

export const timeoutStatus = (): statusPb.Status =>
  inBand(grpc.status.DEADLINE_EXCEEDED, 'Timeout', new sharedPb.Timeout());

export const accessDeniedStatus = (): statusPb.Status =>
  inBand(grpc.status.PERMISSION_DENIED, 'AccessDenied', new sharedPb.AccessDenied());

/** A node without a leader answers an append with this: no code, and details that are empty. */
export function notReadyStatus(): statusPb.Status {
  const details = new anyPb.Any();
  details.pack(new emptyPb.Empty().serializeBinary(), 'google.protobuf.Empty');
  return new statusPb.Status().setMessage('Server Is Not Ready').setDetails(details);
}

export const badRequestStatus = (message: string): statusPb.Status =>
  inBand(grpc.status.INVALID_ARGUMENT, 'BadRequest', new sharedPb.BadRequest().setMessage(message));

export function appendTooLargeStatus(excess: Excess): statusPb.Status {
  if (excess.kind === 'append') {
    const message = new sharedPb.MaximumAppendSizeExceeded().setMaxappendsize(excess.limit);
    return inBand(grpc.status.INVALID_ARGUMENT, 'MaximumAppendSizeExceeded', message);
  }
  // The client's definitions are older than this message.
  const writer = new jspb.BinaryWriter();
  writer.writeString(1, excess.id);
  writer.writeUint32(2, excess.size);
  writer.writeUint32(3, excess.limit);
  const message = { serializeBinary: () => writer.getResultBuffer() };
  return inBand(grpc.status.INVALID_ARGUMENT, 'MaximumAppendEventSizeExceeded', message);
}
