import type grpc from '@grpc/grpc-js';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import { filteredBy } from './filter.ts';
import { PAGE, toFilter } from './filterOptions.ts';
import { eventResponse, notFoundResponse, streamName, toPosition } from './messages.ts';
import type { NodeContext } from './node.ts';
import { subscribeToAll, subscribeToStream } from './subscribe.ts';
import type { LogRecord, StreamRange, TfPosition } from './types.ts';
import { streamDeleted } from './wireErrors.ts';
import { createResponder, type Responder } from './responder.ts';

const { FORWARDS } = streamsPb.ReadReq.Options.ReadDirection;

async function readStream({ log }: NodeContext, options: streamsPb.ReadReq.Options, send: Responder['send']): Promise<void> {
  const from = options.getStream();
  const stream = streamName(from?.getStreamIdentifier());
  const direction = options.getReadDirection() === FORWARDS ? 'forwards' : 'backwards';
  let remaining = Number(options.getCount());
  let range: StreamRange = { from: from?.hasEnd() ? 'end' : from?.hasRevision() ? BigInt(from.getRevision()) : 0n, direction, limit: 0 };
  while (remaining > 0) {
    const limit = Math.min(PAGE, remaining);
    const read = log.readStream(stream, { ...range, limit });
    if (read.kind === 'not_found') return void (await send(notFoundResponse(stream)));
    if (read.kind === 'deleted') throw streamDeleted(stream);
    for (const record of read.records) await send(eventResponse(record));
    const last = read.records.at(-1);
    if (last === undefined || read.records.length < limit || (direction === 'backwards' && last.revision === 0n)) return;
    remaining -= read.records.length;
    range = { ...range, from: direction === 'forwards' ? last.revision + 1n : last.revision - 1n };
  }
}

const asBound = ({ position }: LogRecord): TfPosition => ({ commit: position, prepare: position });
const justAfter = ({ position }: LogRecord): TfPosition => ({ commit: position, prepare: position + 1n });

async function readAll({ log }: NodeContext, options: streamsPb.ReadReq.Options, send: Responder['send']): Promise<void> {
  const from = options.getAll();
  const forwards = options.getReadDirection() === FORWARDS;
  const filter = toFilter(options.getFilter());
  const passes = filter ? filteredBy(filter) : () => true;
  let remaining = Number(options.getCount());
  let start: TfPosition | 'end' = from?.hasPosition() ? toPosition(from.getPosition()) : from?.hasEnd() ? 'end' : { commit: 0n, prepare: 0n };
  while (remaining > 0) {
    const records: LogRecord[] = forwards ? (start === 'end' ? [] : log.readAllForwards(start, PAGE)) : log.readAllBackwards(start, PAGE);
    for (const record of records.filter(passes).slice(0, remaining)) {
      remaining -= 1;
      await send(eventResponse(record));
    }
    const last = records.at(-1);
    if (last === undefined) return;
    start = forwards ? justAfter(last) : asBound(last);
  }
}

/** Streams/Read: a stream or `$all`, in both directions, once or as a subscription. */
export const handleRead =
  (node: NodeContext) =>
  (call: grpc.ServerWritableStream<streamsPb.ReadReq, streamsPb.ReadResp>): void => {
    const options = call.request.getOptions() ?? new streamsPb.ReadReq.Options();
    const { send, signal } = createResponder(call);
    const subscribes = options.hasSubscription();
    const run = options.hasStream() ? (subscribes ? subscribeToStream : readStream) : subscribes ? subscribeToAll : readAll;
    run(node, options, send, signal).then(
      () => call.end(),
      (error: unknown) => call.emit('error', error),
    );
  };
