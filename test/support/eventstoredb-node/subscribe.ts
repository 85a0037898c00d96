import type streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import { filteredBy } from './filter.ts';
import type { NodeLog } from './log.ts';
import { caughtUpResponse, checkpointResponse, confirmationResponse, eventResponse, fellBehindResponse, streamName, toPosition } from './messages.ts';
import type { NodeContext } from './node.ts';
import { PAGE, toFilter } from './filterOptions.ts';
import type { Responder } from './responder.ts';
import type { LogRecord, TfPosition } from './types.ts';
import { streamDeleted } from './wireErrors.ts';

interface Source {
  /** The next records, at most a page; the cursor moves past them. */
  next: () => LogRecord[];
  passes: (record: LogRecord) => boolean;
  /** Records to consider between two checkpoints; none are sent when undefined. */
  checkpointInterval: number | undefined;
}

/** Resolves at the next write to the log, or when the call is over. */
const writeOrEnd = (log: NodeLog, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const stop = log.onWrite(done);
    function done(): void {
      stop();
      signal.removeEventListener('abort', done);
      resolve();
    }
    signal.addEventListener('abort', done, { once: true });
  });

/** Catches up and goes live; a client that is too slow is told that it fell behind, and caught up again. */
async function follow(log: NodeLog, source: Source, { send, signal }: Responder): Promise<void> {
  await send(confirmationResponse());
  let live = false;
  let considered = 0;
  while (!signal.aborted) {
    const records = source.next();
    let slow = false;
    for (const record of records) {
      if (source.passes(record)) slow = (await send(eventResponse(record))) || slow;
      considered += 1;
      if (source.checkpointInterval !== undefined && considered >= source.checkpointInterval) {
        considered = 0;
        await send(checkpointResponse(record.position));
      }
    }
    if (records.length === PAGE) {
      if (live && slow) await send(fellBehindResponse());
      live &&= !slow;
      continue;
    }
    if (!live) await send(caughtUpResponse());
    live = true;
    await writeOrEnd(log, signal);
  }
}

export async function subscribeToAll(node: NodeContext, options: streamsPb.ReadReq.Options, send: Responder['send'], signal: AbortSignal): Promise<void> {
  const { log } = node;
  const from = options.getAll();
  const filter = toFilter(options.getFilter());
  let cursor: TfPosition = { commit: 0n, prepare: 0n };
  const pass = (record: LogRecord | undefined) => {
    if (record) cursor = { commit: record.position, prepare: record.position + 1n };
  };
  if (from?.hasPosition()) {
    // A server begins after the first record that it finds at the position or later, whether or not it is the one named.
    cursor = toPosition(from.getPosition());
    pass(log.readAllForwards(cursor, 1)[0]);
  } else if (from?.hasEnd()) {
    pass(log.readAllBackwards('end', 1)[0]);
  }
  const next = () => {
    const records = log.readAllForwards(cursor, PAGE);
    pass(records.at(-1));
    return records;
  };
  await follow(log, { next, passes: filter ? filteredBy(filter) : () => true, checkpointInterval: filter?.checkpointInterval }, { send, signal });
}

export async function subscribeToStream(node: NodeContext, options: streamsPb.ReadReq.Options, send: Responder['send'], signal: AbortSignal): Promise<void> {
  const { log } = node;
  const from = options.getStream();
  const stream = streamName(from?.getStreamIdentifier());
  const read = (range: Parameters<NodeLog['readStream']>[1]): LogRecord[] => {
    const result = log.readStream(stream, range);
    if (result.kind === 'deleted') throw streamDeleted(stream);
    return result.kind === 'found' ? result.records : [];
  };
  let cursor = from?.hasRevision() ? BigInt(from.getRevision()) + 1n : 0n;
  if (from?.hasEnd()) cursor = (read({ from: 'end', direction: 'backwards', limit: 1 })[0]?.revision ?? -1n) + 1n;
  const next = () => {
    const records = read({ from: cursor, direction: 'forwards', limit: PAGE });
    cursor = (records.at(-1)?.revision ?? cursor - 1n) + 1n;
    return records;
  };
  await follow(log, { next, passes: () => true, checkpointInterval: undefined }, { send, signal });
}
