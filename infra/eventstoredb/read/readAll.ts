import { addAbortListener } from 'node:events';
import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import streamsPb, { type ReadReq } from '@eventstore/db-client/generated/streams_pb.js';
import { STREAM_PREFIXES } from '../../../shared/eventlog/eventTypes.ts';
import type { Position, ReadOptions, StoredEvent } from '../../../shared/ports/eventStore.ts';
import type { HostClient } from '../connection/hostClient.ts';
import { parsePosition, toEventPosition } from './positions.ts';
import type { ServerEvent } from './readResponse.ts';

const { Options } = streamsPb.ReadReq;
const DIRECTIONS = {
  forwards: Options.ReadDirection.FORWARDS,
  backwards: Options.ReadDirection.BACKWARDS,
};
/** A server sends a subscription one checkpoint per this many times 32 records. */
const CHECKPOINT_INTERVAL = 8;

const empty = (): sharedPb.Empty => new sharedPb.Empty();

const buildRequest = (options: streamsPb.ReadReq.Options): ReadReq =>
  new streamsPb.ReadReq().setOptions(
    options.setUuidOption(new Options.UUIDOption().setString(empty())),
  );

const turnlogStreams = (): streamsPb.ReadReq.Options.FilterOptions =>
  new Options.FilterOptions()
    .setStreamIdentifier(new Options.FilterOptions.Expression().setPrefixList([...STREAM_PREFIXES]))
    .setCount(empty())
    .setCheckpointintervalmultiplier(CHECKPOINT_INTERVAL);

/** Reads events of one stream. */
export function buildStreamRequest(
  stream: string,
  { direction, from, limit }: ReadOptions,
): ReadReq {
  const range = new Options.StreamOptions().setStreamIdentifier(
    new sharedPb.StreamIdentifier().setStreamName(Buffer.from(stream)),
  );
  if (from !== undefined) range.setRevision(String(from));
  else if (direction === 'forwards') range.setStart(empty());
  else range.setEnd(empty());
  const options = new Options().setStream(range).setReadDirection(DIRECTIONS[direction]);
  return buildRequest(
    options.setCount(String(Math.min(limit, Number.MAX_SAFE_INTEGER))).setNoFilter(empty()),
  );
}

/** Reads the last record of the log, in any stream. Its cost does not depend on the log's length. */
const buildLastRecordRequest = (): ReadReq =>
  buildRequest(
    new Options()
      .setAll(new Options.AllOptions().setEnd(empty()))
      .setReadDirection(Options.ReadDirection.BACKWARDS)
      .setCount('1')
      .setNoFilter(empty()),
  );

const startAt = (position: Position | undefined): streamsPb.ReadReq.Options.AllOptions => {
  const start = new Options.AllOptions();
  if (position === undefined) return start.setStart(empty());
  const { commit, prepare } = parsePosition(position);
  return start.setPosition(
    new Options.Position().setCommitPosition(String(commit)).setPreparePosition(String(prepare)),
  );
};

/** Reads events of Turnlog's streams, starting with the one at the position. */
export const buildTurnlogEventsRequest = (position: Position | undefined, limit: number): ReadReq =>
  buildRequest(
    new Options()
      .setAll(startAt(position))
      .setReadDirection(Options.ReadDirection.FORWARDS)
      .setCount(String(limit))
      .setFilter(turnlogStreams()),
  );

/** Reads the record at the position, or the next one if none begins there, in any stream. */
export const buildRecordAtRequest = (position: Position): ReadReq =>
  buildRequest(
    new Options()
      .setAll(startAt(position))
      .setReadDirection(Options.ReadDirection.FORWARDS)
      .setCount('1')
      .setNoFilter(empty()),
  );

/** Subscribes to Turnlog's streams, after a position or from the beginning. */
export const buildSubscribeRequest = (after: Position | undefined): ReadReq =>
  buildRequest(
    new Options()
      .setAll(startAt(after))
      .setSubscription(new Options.SubscriptionOptions())
      .setFilter(turnlogStreams()),
  );

/**
 * Converts to the port's format. Data of other applications may not be JSON; the codec detects
 * that.
 */
export const toStoredEvent = (event: ServerEvent): StoredEvent => ({
  id: event.id,
  stream: event.stream,
  revision: event.revision,
  position: toEventPosition(event.commit),
  type: event.type,
  data: event.data,
  metadata: event.metadata,
});

/** What an event holds in memory, in bytes: a server chooses the length of each of its texts. */
export const sizeInMemory = ({ id, stream, type, bytes }: ServerEvent): number =>
  bytes + id.length + stream.length + type.length;

/** Whether Turnlog may have written the event: JSON, and neither a system event nor a link. */
export const isTurnlogEvent = ({ type, isJson }: ServerEvent): boolean =>
  isJson && !type.startsWith('$');

export interface ReadAllResult {
  events: ServerEvent[];
  /** The server reported that the stream does not exist. */
  streamNotFound: boolean;
}

export interface ReadCallOptions {
  requiresLeader: boolean;
  signal: AbortSignal;
  /** Stops after the event that reaches this size, in bytes of data and metadata. */
  maxBytes?: number | undefined;
  /** Called for every response. */
  onActivity: () => void;
}

/**
 * The most that one answer may hold in memory, in bytes. The largest that Turnlog needs is some
 * 33 MiB: the events near a conflict, each as large as an append can be.
 */
const MAX_ANSWER_BYTES = 40 * 1024 * 1024;

/**
 * Reads the events that answer a request, up to its count and `maxBytes`; a server may send more.
 * Rejects with the abort reason, and when the answer has more than 40 MiB.
 */
export async function readAll(
  client: HostClient,
  request: ReadReq,
  { requiresLeader, maxBytes = Infinity, signal, onActivity }: ReadCallOptions,
): Promise<ReadAllResult> {
  signal.throwIfAborted();
  const call = await client.openRead(request, requiresLeader);
  const result: ReadAllResult = { events: [], streamNotFound: false };
  const { promise: completed, resolve, reject } = Promise.withResolvers<void>();
  using _cancelling = addAbortListener(signal, () => {
    reject(signal.reason);
    call.cancel();
  });
  const limit = Number(request.getOptions()!.getCount());
  let bytes = 0;
  let heldBytes = 0;
  function stop(error?: Error): void {
    if (error) reject(error);
    else resolve();
    call.cancel();
  }
  call.on('data', (response) => {
    onActivity();
    const { event } = response;
    if (event && result.events.length >= limit) stop();
    else if (event && bytes < maxBytes) {
      result.events.push(event);
      bytes += event.bytes;
      heldBytes += sizeInMemory(event);
      if (bytes >= maxBytes) stop();
      else if (heldBytes > MAX_ANSWER_BYTES)
        stop(new Error('The event store sent an answer of more than 40 MiB.'));
    }
    if (response.streamNotFound) result.streamNotFound = true;
  });
  call.on('error', reject);
  call.on('end', resolve);
  await completed;
  return result;
}

/**
 * Reads the position of the last record of the log, in any stream; undefined in an empty log. It
 * succeeds only on a living node, which leads with a quorum if `requiresLeader`, and for a user with
 * every right that a subscription needs.
 */
export async function readEndOfLog(
  client: HostClient,
  {
    requiresLeader,
    signal,
    onActivity = () => undefined,
  }: Omit<ReadCallOptions, 'maxBytes' | 'onActivity'> & { onActivity?: () => void },
): Promise<Position | undefined> {
  const options = { requiresLeader, signal, onActivity };
  const { events } = await readAll(client, buildLastRecordRequest(), options);
  const [lastRecord] = events;
  return lastRecord && toEventPosition(lastRecord.commit);
}
