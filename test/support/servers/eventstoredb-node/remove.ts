import type grpc from '@grpc/grpc-js';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import { authorizationOf } from './access.ts';
import { streamName, toExpected } from './messages.ts';
import type { NodeContext } from './node.ts';
import {
  accessDenied,
  streamDeleted,
  timedOut,
  unavailable,
  wrongExpectedVersion,
  type WireError,
} from './wireErrors.ts';

type Options = streamsPb.DeleteReq.Options | streamsPb.TombstoneReq.Options;

interface Call {
  metadata: grpc.Metadata;
  request: { getOptions(): Options | undefined };
}

/**
 * Removes through the leader and answers with the position of the deletion, or the error that fails
 * the call.
 */
function remove(
  node: NodeContext,
  call: Call,
  hard: boolean,
  answered: (error: WireError | null, position?: string) => void,
): void {
  const options = call.request.getOptions();
  const stream = streamName(options?.getStreamIdentifier());
  const caller = node.access.caller(authorizationOf(call.metadata)) ?? 'anonymous';
  if (!node.access.allows(caller, 'delete', stream)) return answered(accessDenied());
  const expected = options === undefined ? 'any' : toExpected(options, options.getRevision());
  node.write(call.metadata, {
    operation: { kind: 'remove', stream, expected, hard },
    answer: (outcome) => {
      if (outcome.kind === 'deleted') answered(streamDeleted(stream));
      else if (outcome.kind === 'wrong_expected_version')
        answered(wrongExpectedVersion(stream, expected, outcome.current));
      else answered(null, String(outcome.position));
    },
    fail: answered,
    timeout: () => answered(timedOut()),
    notReady: () => answered(unavailable()),
  });
}

/**
 * Streams/Delete: hides the stream's events; it can be written again, with its revisions going on.
 */
export const handleDelete =
  (node: NodeContext) =>
  (
    call: grpc.ServerUnaryCall<streamsPb.DeleteReq, streamsPb.DeleteResp>,
    callback: grpc.sendUnaryData<streamsPb.DeleteResp>,
  ): void =>
    remove(node, call, false, (error, at = '') =>
      error
        ? callback(error)
        : callback(
            null,
            new streamsPb.DeleteResp().setPosition(
              new streamsPb.DeleteResp.Position().setCommitPosition(at).setPreparePosition(at),
            ),
          ),
    );

/** Streams/Tombstone: ends the stream for ever. */
export const handleTombstone =
  (node: NodeContext) =>
  (
    call: grpc.ServerUnaryCall<streamsPb.TombstoneReq, streamsPb.TombstoneResp>,
    callback: grpc.sendUnaryData<streamsPb.TombstoneResp>,
  ): void =>
    remove(node, call, true, (error, at = '') =>
      error
        ? callback(error)
        : callback(
            null,
            new streamsPb.TombstoneResp().setPosition(
              new streamsPb.TombstoneResp.Position().setCommitPosition(at).setPreparePosition(at),
            ),
          ),
    );
