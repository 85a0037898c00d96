import type { Client } from 'pg';
import type { ProjectorBeat, ProjectorLag } from '../../../shared/ports/readModels.ts';
import type { Version } from '../../../shared/readModels/version.ts';

/** Notes how far the active projector of the version is, and when. Errors: what pg throws. */
export async function tellBeat(
  client: Client,
  { number }: Version,
  { events, ms }: ProjectorLag,
): Promise<void> {
  await client.query(
    `INSERT INTO turnlog.projector_beats (version, beaten_at, lag_events, lag_ms) VALUES ($1, clock_timestamp(), $2, $3)
     ON CONFLICT (version) DO UPDATE SET
       beaten_at = excluded.beaten_at, lag_events = excluded.lag_events, lag_ms = excluded.lag_ms`,
    [number, events, ms],
  );
}

/** Reads what was noted last; to be given the version's number. */
export const LAST_BEAT = `SELECT lag_events, lag_ms,
  greatest(0, extract(epoch FROM clock_timestamp() - beaten_at) * 1000)::bigint AS silent_ms
  FROM turnlog.projector_beats WHERE version = $1`;

/** A row of that. */
export interface BeatRow {
  lag_events: number | null;
  lag_ms: number;
  silent_ms: number;
}

/** What it says. */
export const toBeat = ({ lag_events, lag_ms, silent_ms }: BeatRow): ProjectorBeat => ({
  lag: { events: lag_events, ms: lag_ms },
  silent_ms,
});
