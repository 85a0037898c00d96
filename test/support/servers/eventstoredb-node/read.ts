import type grpc from '@grpc/grpc-js';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import { authorizationOf } from './access.ts';
import { eventResponse, notFoundResponse, streamName, toPosition } from './messages.ts';
import type { NodeContext } from './node.ts';
import { FIRST, PAGE, turn } from './page.ts';
import { createResponder, type Responder } from './responder.ts';
import { allSource, isAtRecord, toStart, type Start } from './sources.ts';
import { confirmAndRefuse, subscribeToAll, subscribeToStream } from './subscribe.ts';
import type { StreamRange } from './types.ts';
import { accessDenied, streamDeleted, unexpectedResult } from './wireErrors.ts';

type Options = streamsPb.ReadReq.Options;

const { FORWARDS } = streamsPb.ReadReq.Options.ReadDirection;

async function readStream(
  { log, version }: NodeContext,
  options: Options,
  { send }: Responder,
): Promise<void> {
  const from = options.getStream();
  const stream = streamName(from?.getStreamIdentifier());
  const direction = options.getReadDirection() === FORWARDS ? 'forwards' : 'backwards';
  if (from?.hasEnd() && direction === 'forwards') {
    const reason = "fromEventNumber should be non negative. (Parameter 'fromEventNumber')";
    throw unexpectedResult('ReadStreamResult', 'Error', version.givesReasons ? reason : undefined);
  }
  let remaining = Number(options.getCount());
  const first = from?.hasEnd() ? 'end' : from?.hasRevision() ? BigInt(from.getRevision()) : 0n;
  let range: StreamRange = { from: first, direction, limit: 0 };
  while (remaining > 0) {
    const limit = Math.min(PAGE, remaining);
    const read = log.readStream(stream, { ...range, limit });
    if (read.kind === 'not_found') return send(notFoundResponse(stream));
    if (read.kind === 'deleted') throw streamDeleted(stream);
    for (const record of read.records) await send(eventResponse(record));
    const last = read.records.at(-1);
    if (
      last === undefined ||
      read.records.length < limit ||
      (direction === 'backwards' && last.revision === 0n)
    )
      return;
    remaining -= read.records.length;
    range = { ...range, from: direction === 'forwards' ? last.revision + 1n : last.revision - 1n };
  }
}

function invalidPosition({ version }: NodeContext, position: bigint, filtered: boolean) {
  const kind = filtered ? 'FilteredReadAllResult' : 'ReadAllResult';
  const where = 'in chunk #0-0 (chunk-000000.000000)';
  const reason = `Log record at actual pos ${position} has non-positive length: 0.  ${where}.`;
  if (version.slowConsumer === 'ended') return unexpectedResult(kind, 'Error', undefined);
  return unexpectedResult(kind, 'InvalidPosition', version.givesReasons ? reason : undefined);
}

/** Records that are scanned before everything else of the process has its turn. */
const SCANNED_AT_ONCE = 512;

/**
 * Sends what passes as it is found. The call ends when one more is found than was asked for, or the
 * log ends: where nothing more passes it scans all the rest of the log after its last event, about
 * a second for a million records.
 */
async function readAll(
  node: NodeContext,
  options: Options,
  { send, signal }: Responder,
): Promise<void> {
  const { log } = node;
  const from = options.getAll();
  const direction = options.getReadDirection() === FORWARDS ? 'forwards' : 'backwards';
  const { passes } = allSource(log, options);
  let remaining = Number(options.getCount());
  let start: Start = from?.hasPosition()
    ? toStart(toPosition(from.getPosition()))
    : from?.hasEnd()
      ? 'end'
      : FIRST;
  if (start !== 'end' && !isAtRecord(log, start))
    throw invalidPosition(node, start.commit, options.hasFilter());
  for (;;) {
    signal.throwIfAborted();
    const limit = options.hasFilter() ? SCANNED_AT_ONCE : Math.min(SCANNED_AT_ONCE, remaining + 1);
    const heads = log.scan(direction, start, limit);
    for (const head of heads) {
      if (!passes(head)) continue;
      if (remaining === 0) return;
      remaining -= 1;
      const record = log.recordAt(head.position);
      if (record) await send(eventResponse(record));
    }
    const last = heads.at(-1);
    if (last === undefined || heads.length < limit) return;
    const { next, position } = last;
    start =
      direction === 'forwards'
        ? { commit: next, prepare: 0n }
        : { commit: position, prepare: position };
    await turn();
  }
}

/** Streams/Read: a stream or `$all`, in both directions, once or as a subscription. */
export const handleRead =
  (node: NodeContext) =>
  (call: grpc.ServerWritableStream<streamsPb.ReadReq, streamsPb.ReadResp>): void => {
    const options = call.request.getOptions() ?? new streamsPb.ReadReq.Options();
    const caller = node.access.caller(authorizationOf(call.metadata)) ?? 'anonymous';
    const stream = options.hasStream()
      ? streamName(options.getStream()?.getStreamIdentifier())
      : '$all';
    if (!node.access.allows(caller, 'read', stream)) return void call.emit('error', accessDenied());
    const subscribes = options.hasSubscription();
    const elsewhere = node.leaderElsewhere(call.metadata);
    if (elsewhere && !(subscribes && node.version.confirmsRefused))
      return void call.emit('error', elsewhere);
    const responder = createResponder(call);
    const run = options.hasStream()
      ? subscribes
        ? subscribeToStream
        : readStream
      : subscribes
        ? subscribeToAll
        : readAll;
    (elsewhere ? confirmAndRefuse(responder, elsewhere) : run(node, options, responder)).then(
      () => call.end(),
      (error: unknown) => call.emit('error', error),
    );
  };
