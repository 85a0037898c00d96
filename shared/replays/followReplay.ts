import type { ReplayEvent, SessionEnd } from './events.ts';
import type { StreamSource } from '../eventlog/reading/reportDamage.ts';
import { readPage } from '../eventlog/reading/readWhole.ts';
import { replayStream } from '../eventlog/streams.ts';
import { LIMITS } from '../limits.ts';
import { sleep } from '../lib/time/sleep.ts';
import type { ReadModels } from '../ports/readModels.ts';
import type { ReplayRow } from '../readModels/tables.ts';
import { findOwnReplay, findReplayRow } from './queries.ts';

type Source = StreamSource & { readModels: Pick<ReadModels, 'findReplay'> };

/** An update about a replay. All updates up to its revision have been sent. */
export type ReplayUpdate =
  | { type: 'session_ended'; revision: number; end: SessionEnd }
  /** The `ended` update is the last one. */
  | { type: 'progress' | 'ended'; revision: number; row: ReplayRow };

/**
 * Follows a replay from a revision of its stream to its end: the sessions that end, in order, and
 * the replay's row whenever it has changed at a poll. Works in any process. Errors:
 * `replay_not_found`, `stream_damaged` (noted), `release_too_old`, `key_missing`,
 * `store_unavailable`, the abort reason.
 */
export async function* followReplay(
  source: Source,
  { account_id, replay_id, after }: { account_id: string; replay_id: string; after: number },
  signal: AbortSignal,
): AsyncGenerator<ReplayUpdate> {
  const { followMs, followedEvents: limit } = LIMITS.replays;
  const { pageBytes: maxBytes } = LIMITS.store;
  const stream = replayStream(replay_id);
  // Only once: a read of the log at every poll of every stream would add up.
  let row = await findOwnReplay(source, account_id, replay_id);
  for (let sent = after; ;) {
    const isNew = row.revision > sent;
    while (sent < row.revision) {
      const page = { direction: 'forwards', from: sent + 1, limit, maxBytes } as const;
      const events = await readPage(source, stream, page);
      for (const { recorded, event } of events) {
        if (recorded.revision > row.revision) break;
        sent = recorded.revision;
        const { type, data } = event as ReplayEvent;
        if (type !== 'replay.session_ended.v1') continue;
        yield { type: 'session_ended', revision: sent, end: data };
      }
      // A follower node of the cluster may lag behind. The events are sent after the next poll.
      if (events.length === 0) break;
    }
    if (row.status !== 'running' && sent >= row.revision) {
      yield { type: 'ended', revision: row.revision, row };
      return;
    }
    if (isNew) yield { type: 'progress', revision: sent, row };
    await sleep(followMs, signal);
    row = await findReplayRow(source, account_id, replay_id);
  }
}
