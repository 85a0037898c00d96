import type grpc from '@grpc/grpc-js';
import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import statusPb from '@eventstore/db-client/generated/status_pb.js';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import emptyPb from 'google-protobuf/google/protobuf/empty_pb.js';
import { authorizationOf } from './access.ts';
import { appendMeter, type Meter } from './appendSize.ts';
import { parseUuid, streamIdentifier, streamName, toExpected, toProposed } from './messages.ts';
import type { NodeContext } from './node.ts';
import type { AppendOutcome, Expected, Proposed } from './types.ts';
import {
  accessDeniedStatus,
  appendTooLargeStatus,
  badRequestStatus,
  notReadyStatus,
  refusalStatus,
  timeoutStatus,
} from './wireErrors.ts';

interface PendingAppend {
  stream: string;
  expected: Expected;
  events: Proposed[];
  measure: Meter;
}

function success({
  revision,
  position,
}: {
  revision: bigint;
  position: bigint;
}): streamsPb.BatchAppendResp.Success {
  const at = new sharedPb.AllStreamPosition()
    .setCommitPosition(String(position))
    .setPreparePosition(String(position));
  const done = new streamsPb.BatchAppendResp.Success().setPosition(at);
  return revision < 0n
    ? done.setNoStream(new emptyPb.Empty())
    : done.setCurrentRevision(String(revision));
}

type BatchAppendCall = grpc.ServerDuplexStream<streamsPb.BatchAppendReq, streamsPb.BatchAppendResp>;

/**
 * Streams/BatchAppend: one call carries many appends, told apart by correlation ids; each is
 * answered when it is known.
 */
export const handleBatchAppend =
  (node: NodeContext) =>
  (call: BatchAppendCall): void => {
    const pending = new Map<string, PendingAppend>();
    // Who has opened the call may go on with it, whatever becomes of the password.
    const caller = node.access.caller(authorizationOf(call.metadata)) ?? 'anonymous';

    const respond = (
      correlationId: string,
      stream: string,
      result: statusPb.Status | streamsPb.BatchAppendResp.Success,
    ): void => {
      const response = new streamsPb.BatchAppendResp()
        .setCorrelationId(new sharedPb.UUID().setString(correlationId))
        .setStreamIdentifier(streamIdentifier(stream));
      if (!call.cancelled)
        call.write(
          result instanceof statusPb.Status
            ? response.setError(result)
            : response.setSuccess(result),
        );
    };

    function accept(request: streamsPb.BatchAppendReq, correlationId: string): void {
      const options = request.getOptions();
      if (options) {
        const stream = streamName(options.getStreamIdentifier());
        if (!node.access.allows(caller, 'write', stream))
          return respond(correlationId, stream, accessDeniedStatus());
        const expected = toExpected(options, options.getStreamPosition());
        pending.set(correlationId, {
          stream,
          expected,
          events: [],
          measure: appendMeter(node.version),
        });
      }
      const append = pending.get(correlationId);
      if (!append) return;
      for (const message of request.getProposedMessagesList()) {
        const event = toProposed(message);
        append.events.push(event);
        const excess = append.measure(event);
        if (!excess) continue;
        pending.delete(correlationId);
        return respond(correlationId, append.stream, appendTooLargeStatus(excess));
      }
      if (request.getIsFinal()) {
        pending.delete(correlationId);
        write(correlationId, append);
      }
    }

    function write(correlationId: string, { stream, expected, events }: PendingAppend): void {
      const outcomeOf = (outcome: AppendOutcome) =>
        outcome.kind === 'success' ? success(outcome) : refusalStatus(outcome, stream, expected);
      node.write(call.metadata, {
        operation: { kind: 'append', stream, expected, events },
        answer: (outcome) => respond(correlationId, stream, outcomeOf(outcome)),
        fail: (error) => call.emit('error', error),
        timeout: () => respond(correlationId, stream, timeoutStatus()),
        notReady: () => respond(correlationId, stream, notReadyStatus()),
      });
    }

    call.on('data', (request: streamsPb.BatchAppendReq) => {
      const correlationId = parseUuid(request.getCorrelationId()) ?? '';
      try {
        accept(request, correlationId);
      } catch (error) {
        pending.delete(correlationId);
        const message = error instanceof Error ? error.message : String(error);
        respond(
          correlationId,
          streamName(request.getOptions()?.getStreamIdentifier()),
          badRequestStatus(message),
        );
      }
    });
    call.on('end', () => call.end());
    call.on('error', () => undefined);
  };
