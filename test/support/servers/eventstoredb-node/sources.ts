import type streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import { filteredBy } from './filter.ts';
import { toFilter } from './filterOptions.ts';
import type { NodeLog } from './log.ts';
import { streamName, toPosition } from './messages.ts';
import { HEAD, PAGE, type Source } from './page.ts';
import { DELETED_STREAM, type LogRecord, type TfPosition } from './types.ts';
import { streamDeleted } from './wireErrors.ts';

/**
 * Where a subscription begins: after a place, at the start (HEAD), or with what is written from now
 * on.
 */
export type Start = TfPosition | 'end';

/** What a subscription follows. */
export interface Followed {
  source: Source;
  start: Start;
  /** Considered records between two checkpoints; none are sent when undefined. */
  interval: number | undefined;
  /** Whether a record begins where the client wants to begin. */
  isStartValid: () => boolean;
}

/** Clients name the end by the largest number; a server keeps the rest in 63 bits. */
const END = 2n ** 64n - 1n;
const clamped = (value: bigint): bigint => (value > DELETED_STREAM ? DELETED_STREAM : value);

export function toStart({ commit, prepare }: TfPosition): Start {
  return commit === END ? 'end' : { commit: clamped(commit), prepare: clamped(prepare) };
}

export const isAtRecord = (log: NodeLog, start: Start): boolean =>
  start === 'end' || log.isPosition(start.commit);

/** `$all`, filtered or not. */
export function followAll(log: NodeLog, options: streamsPb.ReadReq.Options): Followed {
  const from = options.getAll();
  const filter = toFilter(options.getFilter());
  const start = from?.hasPosition()
    ? toStart(toPosition(from.getPosition()))
    : from?.hasEnd()
      ? 'end'
      : HEAD;
  const isStartValid = (): boolean => isAtRecord(log, start);
  return {
    source: allSource(log, options),
    start,
    interval: filter?.checkpointInterval,
    isStartValid,
  };
}

export function allSource(log: NodeLog, options: streamsPb.ReadReq.Options): Source {
  const filter = toFilter(options.getFilter());
  return {
    records: log.readAllForwards,
    passes: filter ? filteredBy(filter) : () => true,
    placeOf: ({ position }) => ({ commit: position, prepare: position }),
    after: ({ next }) => ({ commit: next, prepare: 0n }),
    last: () => ({ commit: log.lastPosition(), prepare: log.lastPosition() }),
    window: filter?.window ?? PAGE,
  };
}

/** One stream, whose places are revisions. */
export function followStream(log: NodeLog, options: streamsPb.ReadReq.Options): Followed {
  const from = options.getStream();
  const stream = streamName(from?.getStreamIdentifier());
  const place = (revision: bigint): TfPosition => ({ commit: revision, prepare: revision });
  function records({ commit, prepare }: TfPosition, limit: number): LogRecord[] {
    const first = prepare > commit ? commit + 1n : commit;
    const read = log.readStream(stream, { from: first, direction: 'forwards', limit });
    if (read.kind === 'deleted') throw streamDeleted(stream);
    return read.kind === 'found' ? read.records : [];
  }
  const source: Source = {
    records,
    passes: () => true,
    placeOf: ({ revision }) => place(revision),
    after: ({ revision }) => place(revision + 1n),
    last: () => place(log.head(stream)),
    window: PAGE,
  };
  const start = from?.hasRevision()
    ? toStart(place(BigInt(from.getRevision())))
    : from?.hasEnd()
      ? 'end'
      : HEAD;
  return { source, start, interval: undefined, isStartValid: () => true };
}
