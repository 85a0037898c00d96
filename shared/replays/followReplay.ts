import { LRUCache } from 'lru-cache';
import type { ReplayEvent, SessionEnd } from './events.ts';
import { createReadReservation } from '../eventlog/reading/readMemory.ts';
import type { StreamSource } from '../eventlog/reading/reportDamage.ts';
import { readPage } from '../eventlog/reading/readWhole.ts';
import { replayStream } from '../eventlog/streams.ts';
import { yieldToEventLoop } from '../lib/concurrency/yieldToEventLoop.ts';
import type { MemoryLedger } from '../lib/memory/ledger.ts';
import { sleep } from '../lib/time/sleep.ts';
import { LIMITS } from '../limits.ts';
import type { ReadModels } from '../ports/readModels.ts';
import type { ReplayRow } from '../readModels/tables.ts';
import { requireVisibleReplay } from './queries.ts';

type Source = StreamSource & {
  memory: Pick<MemoryLedger, 'tryReserve' | 'reserve'>;
  readModels: Pick<ReadModels, 'findReplay'>;
};

type SessionEnded = { type: 'session_ended'; revision: number; end: SessionEnd };

/** An update about a replay. All updates up to its revision have been sent. */
export type ReplayUpdate =
  | SessionEnded
  /** The `ended` update is the last one. */
  | { type: 'progress' | 'ended'; revision: number; row: ReplayRow };

interface Poll {
  at: number;
  row: Promise<ReplayRow | undefined>;
}

/** The latest poll of each replay, by read models. */
const polls = new WeakMap<Source['readModels'], LRUCache<string, Poll>>();

/** The replay's row. Followers that ask within half of the interval share one query. */
function pollProgress({ readModels }: Source, replay_id: string): Poll['row'] {
  const { followMs, runningOfAll: max } = LIMITS.replays;
  const latest = polls.get(readModels) ?? new LRUCache<string, Poll>({ max });
  polls.set(readModels, latest);
  const now = performance.now();
  const shared = latest.get(replay_id);
  if (shared && now - shared.at < followMs / 2) return shared.row;
  const row = readModels.findReplay(replay_id);
  latest.set(replay_id, { at: now, row });
  return row;
}

/**
 * The ended sessions in a page of the replay's events after a revision, and the page's last revision.
 * The page is in memory, which is reserved, only until they are found: a client may read slowly.
 */
function readSessionEnds(
  source: Source,
  { account_id, replay_id, revision }: ReplayRow,
  sent: number,
  signal: AbortSignal,
): Promise<{ ends: SessionEnded[]; last: number }> {
  const { followedEvents: limit } = LIMITS.replays;
  const { pageBytes: maxBytes } = LIMITS.store;
  const page = { direction: 'forwards', from: sent + 1, limit, maxBytes } as const;
  const reserveRead = createReadReservation(source.memory, account_id);
  const read = async (): Promise<{ ends: SessionEnded[]; last: number }> => {
    await yieldToEventLoop(account_id);
    const ends: SessionEnded[] = [];
    let last = sent;
    for (const { recorded, event } of await readPage(source, replayStream(replay_id), page)) {
      if (recorded.revision > revision) break;
      last = recorded.revision;
      const { type, data } = event as ReplayEvent;
      if (type === 'replay.session_ended.v1')
        ends.push({ type: 'session_ended', revision: last, end: data });
    }
    return { ends, last };
  };
  return reserveRead(read, { signal });
}

/**
 * Follows a replay, whose row its caller has found, from a revision of its stream to its end: the
 * sessions that end, in order, and the replay's row whenever it has changed at a poll. Works in any
 * process. Errors: `replay_not_found`, `stream_damaged` (noted), `release_too_old`, `key_missing`,
 * `store_unavailable`, `rate_limited` or `overloaded` without memory, the abort reason.
 */
export async function* followReplay(
  source: Source,
  { row: found, after }: { row: ReplayRow; after: number },
  signal: AbortSignal,
): AsyncGenerator<ReplayUpdate> {
  const { account_id, replay_id } = found;
  let row = found;
  let isNew = row.revision > after;
  // The first event, which is the largest one, shows nothing.
  for (let sent = Math.max(after, 0); ;) {
    while (sent < row.revision) {
      const { ends, last } = await readSessionEnds(source, row, sent, signal);
      // A follower node of the cluster may lag behind. The events are sent after the next poll.
      if (last === sent) break;
      sent = last;
      yield* ends;
    }
    if (row.status !== 'running' && sent >= row.revision) {
      yield { type: 'ended', revision: row.revision, row };
      return;
    }
    if (isNew) yield { type: 'progress', revision: sent, row };
    await sleep(LIMITS.replays.followMs, signal);
    row = requireVisibleReplay(await pollProgress(source, replay_id), account_id);
    isNew = row.revision > sent;
    if (isNew) await yieldToEventLoop(account_id);
  }
}
