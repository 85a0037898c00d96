import type grpc from '@grpc/grpc-js';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import { authorizationOf } from './access.ts';
import { streamName, toExpected } from './messages.ts';
import type { NodeContext } from './node.ts';
import { accessDenied, streamDeleted, wrongExpectedVersion } from './wireErrors.ts';

type Options = streamsPb.DeleteReq.Options | streamsPb.TombstoneReq.Options;

interface Call {
  metadata: grpc.Metadata;
  request: { getOptions(): Options | undefined };
}

/** Answers with the position of the deletion. Throws the error that fails the call. */
function remove({ log, access }: NodeContext, call: Call, hard: boolean): bigint {
  const options = call.request.getOptions();
  const stream = streamName(options?.getStreamIdentifier());
  const caller = access.caller(authorizationOf(call.metadata)) ?? 'anonymous';
  if (!access.allows(caller, 'delete', stream)) throw accessDenied();
  const expected = options === undefined ? 'any' : toExpected(options, options.getRevision());
  const outcome = log.remove(stream, expected, hard);
  if (outcome.kind === 'deleted') throw streamDeleted(stream);
  if (outcome.kind === 'wrong_expected_version') throw wrongExpectedVersion(stream, expected, outcome.current);
  return outcome.position;
}

/** Streams/Delete: hides the stream's events; it can be written again, with its revisions going on. */
export const handleDelete =
  (node: NodeContext) =>
  (call: grpc.ServerUnaryCall<streamsPb.DeleteReq, streamsPb.DeleteResp>, callback: grpc.sendUnaryData<streamsPb.DeleteResp>): void => {
    try {
      const at = String(remove(node, call, false));
      callback(null, new streamsPb.DeleteResp().setPosition(new streamsPb.DeleteResp.Position().setCommitPosition(at).setPreparePosition(at)));
    } catch (error) {
      callback(error as grpc.ServiceError);
    }
  };

/** Streams/Tombstone: ends the stream for ever. */
export const handleTombstone =
  (node: NodeContext) =>
  (call: grpc.ServerUnaryCall<streamsPb.TombstoneReq, streamsPb.TombstoneResp>, callback: grpc.sendUnaryData<streamsPb.TombstoneResp>): void => {
    try {
      const at = String(remove(node, call, true));
      callback(null, new streamsPb.TombstoneResp().setPosition(new streamsPb.TombstoneResp.Position().setCommitPosition(at).setPreparePosition(at)));
    } catch (error) {
      callback(error as grpc.ServiceError);
    }
  };
