import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import type { Position, ReadOptions } from '../../shared/ports/eventStore.ts';
import { STREAM_PREFIXES } from '../../shared/eventlog/eventTypes.ts';
import { fromPosition } from './positions.ts';

/** After so many times 32 records a server tells a subscription how far it has come. */
const CHECKPOINT_INTERVAL = 8;

const { Options } = streamsPb.ReadReq;
const DIRECTIONS = {
  forwards: Options.ReadDirection.FORWARDS,
  backwards: Options.ReadDirection.BACKWARDS,
};

const empty = (): sharedPb.Empty => new sharedPb.Empty();

const request = (options: streamsPb.ReadReq.Options): streamsPb.ReadReq =>
  new streamsPb.ReadReq().setOptions(
    options.setUuidOption(new Options.UUIDOption().setString(empty())),
  );

const onlyOurs = (): streamsPb.ReadReq.Options.FilterOptions =>
  new Options.FilterOptions()
    .setStreamIdentifier(new Options.FilterOptions.Expression().setPrefixList([...STREAM_PREFIXES]))
    .setCount(empty())
    .setCheckpointintervalmultiplier(CHECKPOINT_INTERVAL);

/** Events of one stream. */
export function readStreamRequest(
  stream: string,
  { direction, from, limit }: ReadOptions,
): streamsPb.ReadReq {
  const range = new Options.StreamOptions().setStreamIdentifier(
    new sharedPb.StreamIdentifier().setStreamName(Buffer.from(stream)),
  );
  if (from !== undefined) range.setRevision(String(from));
  else if (direction === 'forwards') range.setStart(empty());
  else range.setEnd(empty());
  const options = new Options().setStream(range).setReadDirection(DIRECTIONS[direction]);
  return request(
    options.setCount(String(Math.min(limit, Number.MAX_SAFE_INTEGER))).setNoFilter(empty()),
  );
}

/** The last record of the log, whosever it is: what costs the same however long the log is. */
export const lastRecordRequest = (): streamsPb.ReadReq =>
  request(
    new Options()
      .setAll(new Options.AllOptions().setEnd(empty()))
      .setReadDirection(Options.ReadDirection.BACKWARDS)
      .setCount('1')
      .setNoFilter(empty()),
  );

const from = (position: Position | undefined): streamsPb.ReadReq.Options.AllOptions => {
  const start = new Options.AllOptions();
  if (position === undefined) return start.setStart(empty());
  const { commit, prepare } = fromPosition(position);
  return start.setPosition(
    new Options.Position().setCommitPosition(String(commit)).setPreparePosition(String(prepare)),
  );
};

/** Events of our streams from a position on, its own included. */
export const readFromRequest = (position: Position | undefined, limit: number): streamsPb.ReadReq =>
  request(
    new Options()
      .setAll(from(position))
      .setReadDirection(Options.ReadDirection.FORWARDS)
      .setCount(String(limit))
      .setFilter(onlyOurs()),
  );

/** The record at a position, whosever it is; the next one where none begins there. */
export const recordAtRequest = (position: Position): streamsPb.ReadReq =>
  request(
    new Options()
      .setAll(from(position))
      .setReadDirection(Options.ReadDirection.FORWARDS)
      .setCount('1')
      .setNoFilter(empty()),
  );

/** A subscription to our streams, after a position or from the beginning. */
export const subscribeRequest = (after: Position | undefined): streamsPb.ReadReq =>
  request(
    new Options()
      .setAll(from(after))
      .setSubscription(new Options.SubscriptionOptions())
      .setFilter(onlyOurs()),
  );
