import type grpc from '@grpc/grpc-js';
import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import { authorizationOf } from './access.ts';
import { appendMeter } from './appendSize.ts';
import { streamName, toExpected, toProposed } from './messages.ts';
import type { NodeContext } from './node.ts';
import type { AppendOutcome, Expected, Proposed } from './types.ts';
import {
  accessDenied,
  appendTooLarge,
  invalidArgument,
  streamDeleted,
  timedOut,
  unavailable,
  type WireError,
} from './wireErrors.ts';

const position = (at: bigint) =>
  new streamsPb.AppendResp.Position().setCommitPosition(String(at)).setPreparePosition(String(at));

function appended(outcome: { revision: bigint; position: bigint }): streamsPb.AppendResp.Success {
  const success = new streamsPb.AppendResp.Success().setPosition(position(outcome.position));
  if (outcome.revision < 0n) return success.setNoStream(new sharedPb.Empty());
  return success.setCurrentRevision(String(outcome.revision));
}

/** A version conflict is part of Append's answer; only a deleted stream fails the call. */
function answer(
  outcome: Exclude<AppendOutcome, { kind: 'deleted' }>,
  expected: Expected,
): streamsPb.AppendResp {
  if (outcome.kind === 'success') {
    return new streamsPb.AppendResp().setSuccess(appended(outcome));
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

/**
 * Streams/Append: the options first, then one message per event; written when the client has
 * finished.
 */
export const handleAppend =
  (node: NodeContext) =>
  (call: AppendCall, callback: grpc.sendUnaryData<streamsPb.AppendResp>): void => {
    let options: streamsPb.AppendReq.Options | undefined;
    const events: Proposed[] = [];
    const measure = appendMeter(node.version);
    let failure: WireError | undefined;
    call.on('data', (request: streamsPb.AppendReq) => {
      try {
        options ??= request.getOptions();
        const message = request.getProposedMessage();
        if (!message) return;
        const event = toProposed(message);
        const excess = measure(event);
        if (excess) failure ??= appendTooLarge(excess);
        events.push(event);
      } catch (error) {
        failure ??= invalidArgument(String(error));
      }
    });
    call.on('error', () => undefined);
    call.on('end', () => {
      const stream = streamName(options?.getStreamIdentifier());
      const expected = options === undefined ? 'any' : toExpected(options, options.getRevision());
      const caller = node.access.caller(authorizationOf(call.metadata)) ?? 'anonymous';
      if (!node.access.allows(caller, 'write', stream)) failure = accessDenied();
      if (failure) return callback(failure);
      const respond = (outcome: AppendOutcome): void =>
        outcome.kind === 'deleted'
          ? callback(streamDeleted(stream))
          : callback(null, answer(outcome, expected));
      node.write(call.metadata, {
        operation: { kind: 'append', stream, expected, events },
        answer: respond,
        fail: (error) => callback(error),
        timeout: () => callback(timedOut()),
        notReady: () => callback(unavailable()),
      });
    });
  };
