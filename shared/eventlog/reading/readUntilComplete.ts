import { storeUnavailableError } from '../../lib/errors/turnlogError.ts';
import { sleep, type WaitLimits } from '../../lib/time/sleep.ts';
import { reportDamage, type StreamSource } from './reportDamage.ts';
import type { StreamFlaw } from './streamDamage.ts';

/**
 * A follower node of a cluster may show an event later than others. Events missing at the end of a
 * stream are read again after these pauses, five seconds in total, before the stream is reported as
 * damaged.
 */
const RETRY_PAUSES_MS = [100, 400, 1_000, 1_500, 2_000];

interface CompleteRead<Found> {
  read: () => Promise<Found>;
  /** The flaw at the end of what was read; undefined when it is complete. */
  findFlaw: (result: Found) => StreamFlaw | undefined;
}

/**
 * Repeats a read of a stream until nothing is missing at its end. A stream that was found damaged
 * before is read once only. Throws `stream_damaged` (recorded), `store_unavailable` when the time
 * ends first, what `read` throws, the abort reason.
 */
export async function readUntilComplete<Found>(
  source: StreamSource,
  stream: string,
  { read, findFlaw }: CompleteRead<Found>,
  { until = Infinity, signal }: WaitLimits = source.waitLimits ?? {},
): Promise<Found> {
  for (let attempts = 0; ; attempts += 1) {
    const result = await read();
    const flaw = findFlaw(result);
    if (!flaw) return result;
    const pause = source.damaged.has(stream) ? undefined : RETRY_PAUSES_MS[attempts];
    if (pause === undefined) throw await reportDamage(source, stream, flaw);
    if (performance.now() + pause > until)
      throw storeUnavailableError(
        `The store does not show all of the stream ${stream} yet. Try again in a moment.`,
      );
    await sleep(pause, signal);
  }
}
