/** The most that the clocks of processes differ by. */
const CLOCK_SLACK_MS = 60_000;

/**
 * The earliest time, as `updated_at`, of a session with a turn that is not indexed. `from` is when
 * the first of these turns in the order of the log ended.
 */
export const earliestChange = (from: string): string =>
  new Date(Date.parse(from) - CLOCK_SLACK_MS).toISOString();
