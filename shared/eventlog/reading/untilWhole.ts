import { storeUnavailableError } from '../../lib/errors/turnlogError.ts';
import { sleep, type WaitLimits } from '../../lib/time/sleep.ts';
import { reportDamage, type StreamSource } from './reportDamage.ts';
import type { StreamFlaw } from './streamDamage.ts';

/**
 * A node of a cluster that only follows may show an event some time after others have seen it. What
 * is missing at the end of a stream is looked for again after these pauses, five seconds in all,
 * before it is called missing.
 */
const RETRY_PAUSES_MS = [100, 400, 1_000, 1_500, 2_000];

interface Look<Found> {
  look: () => Promise<Found>;
  /** What seems to be missing at the end, after what was found; undefined where nothing is. */
  missing: (found: Found) => StreamFlaw | undefined;
}

/**
 * What a look at a stream finds once nothing is missing at its end any more. A stream that was
 * found damaged before is not looked at again.
 * Errors: `stream_damaged` (noted), `store_unavailable` also where the time ends while it is in
 * doubt, those of the look, the signal's reason.
 */
export async function readUntilComplete<Found>(
  source: StreamSource,
  stream: string,
  { look, missing }: Look<Found>,
  { until = Infinity, signal }: WaitLimits = {},
): Promise<Found> {
  for (let looks = 0; ; looks += 1) {
    const found = await look();
    const flaw = missing(found);
    if (!flaw) return found;
    const pause = source.damaged.has(stream) ? undefined : RETRY_PAUSES_MS[looks];
    if (pause === undefined) throw await reportDamage(source, stream, flaw);
    if (performance.now() + pause > until)
      throw storeUnavailableError(
        `The store does not show all of the stream ${stream} yet. Try again in a moment.`,
      );
    await sleep(pause, signal);
  }
}
