/** Whole milliseconds since a time of `performance.now()`, a clock that is never adjusted. */
export const elapsedMs = (startedAt: number): number => Math.round(performance.now() - startedAt);
