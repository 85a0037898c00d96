import type grpc from '@grpc/grpc-js';
import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import { streamName, sizeOnDisk, toExpected, toProposed } from './messages.ts';
import type { NodeContext } from './node.ts';
import type { AppendOutcome, Expected, Proposed } from './types.ts';
import { invalidArgument, maxAppendSizeExceeded, streamDeleted, timedOut, unavailable, type WireError } from './wireErrors.ts';

/** The server's default limit of an append, in bytes. */
export const MAX_APPEND_SIZE = 1024 * 1024;

const position = (at: bigint) => new streamsPb.AppendResp.Position().setCommitPosition(String(at)).setPreparePosition(String(at));

/** A version conflict is part of Append's answer; only a deleted stream fails the call. */
function answer(outcome: Exclude<AppendOutcome, { kind: 'deleted' }>, expected: Expected): streamsPb.AppendResp {
  if (outcome.kind === 'success') {
    return new streamsPb.AppendResp().setSuccess(new streamsPb.AppendResp.Success().setCurrentRevision(String(outcome.revision)).setPosition(position(outcome.position)));
  }
  const conflict = new streamsPb.AppendResp.WrongExpectedVersion();
  if (outcome.current < 0n) conflict.setCurrentNoStream(new sharedPb.Empty());
  else conflict.setCurrentRevision(String(outcome.current));
  if (typeof expected === 'bigint') conflict.setExpectedRevision(String(expected));
  else if (expected === 'any') conflict.setExpectedAny(new sharedPb.Empty());
  else if (expected === 'no_stream') conflict.setExpectedNoStream(new sharedPb.Empty());
  else conflict.setExpectedStreamExists(new sharedPb.Empty());
  return new streamsPb.AppendResp().setWrongExpectedVersion(conflict);
}

type AppendCall = grpc.ServerReadableStream<streamsPb.AppendReq, streamsPb.AppendResp>;

/** Streams/Append: the options first, then one message per event; written when the client has finished. */
export const handleAppend =
  (node: NodeContext) =>
  (call: AppendCall, callback: grpc.sendUnaryData<streamsPb.AppendResp>): void => {
    let options: streamsPb.AppendReq.Options | undefined;
    const events: Proposed[] = [];
    let failure: WireError | undefined;
    call.on('data', (request: streamsPb.AppendReq) => {
      try {
        options ??= request.getOptions();
        const message = request.getProposedMessage();
        if (message) events.push(toProposed(message));
      } catch (error) {
        failure ??= invalidArgument(String(error));
      }
    });
    call.on('error', () => undefined);
    call.on('end', () => {
      const stream = streamName(options?.getStreamIdentifier());
      const expected = options === undefined ? 'any' : toExpected(options, options.getRevision());
      if (events.reduce((size, event) => size + sizeOnDisk(event), 0) > MAX_APPEND_SIZE) failure ??= maxAppendSizeExceeded(MAX_APPEND_SIZE);
      if (failure) return callback(failure);
      node.write(call.metadata, {
        operation: { kind: 'append', stream, expected, events },
        answer: (outcome) => (outcome.kind === 'deleted' ? callback(streamDeleted(stream)) : callback(null, answer(outcome, expected))),
        fail: (error) => callback(error),
        timeout: () => callback(timedOut()),
        notReady: () => callback(unavailable()),
      });
    });
  };
