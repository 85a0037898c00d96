import {
  isTurnlogError,
  storeUnavailableError,
  type TurnlogError,
} from '../../../shared/lib/errors/turnlogError.ts';
import type { ParkedStreams, ProjectorBeat } from '../../../shared/ports/readModels.ts';
import type { ProjectionHealth } from '../../../shared/health/health.ts';

/** How late read models may be, or how long no projector may say anything, unremarked. */
const LATE_MS = 5_000;
/** What was asked longer ago is no answer: the database has fallen silent. */
const KNOWN_FOR_MS = 5_000;

/** What is asked, each second. */
export interface ReadModelsProbe {
  projectorBeat(): Promise<ProjectorBeat | undefined>;
  listParkedStreams(): Promise<ParkedStreams>;
  countUnindexed(): Promise<number>;
  /** One sentence on why the read models can't be trusted; undefined where they can. */
  distrustReason(): Promise<string | undefined>;
}

interface ReadModelsHealth {
  /** Asks. Errors: `store_unavailable`. */
  poll(): Promise<void>;
  /**
   * What was known last, without asking. Errors: `store_unavailable` where the last look failed, or
   * was too long ago.
   */
  health(): ProjectionHealth;
}

interface ProbeResult {
  beat: ProjectorBeat | undefined;
  parked_streams: ParkedStreams;
  unindexed_turns: number;
  doubt: string | undefined;
  /** Of a monotonic clock, in milliseconds. */
  at: number;
}

const seconds = (ms: number): string => `${Math.round(ms / 1000)} s`;

/** Follows how the read models are that another process may keep up to date. */
export function monitorReadModels(
  asked: ReadModelsProbe,
  now = (): number => performance.now(),
): ReadModelsHealth {
  const begun = now();
  let known: ProbeResult | undefined;
  let failure: TurnlogError | undefined;

  /** Where no projector has ever said anything, this process has waited since it began to look. */
  function lagOf({ beat, at }: ProbeResult): Pick<ProjectionHealth, 'caught_up' | 'lag' | 'late'> {
    const silentMs = Math.round(now() - (beat ? at : begun) + (beat?.silent_ms ?? 0));
    if (silentMs > LATE_MS)
      return {
        caught_up: false,
        lag: { events: null, ms: silentMs + (beat?.lag.ms ?? 0) },
        late: `No projector keeps the read models up to date: none has said so for ${seconds(silentMs)}.`,
      };
    const lag = beat?.lag ?? { events: null, ms: 0 };
    if (lag.ms <= LATE_MS) return { caught_up: true, lag };
    return {
      caught_up: false,
      lag,
      late: `The read models are ${seconds(lag.ms)} behind the log.`,
    };
  }

  return {
    async poll() {
      try {
        const [beat, parked_streams, unindexed_turns, doubt] = await Promise.all([
          asked.projectorBeat(),
          asked.listParkedStreams(),
          asked.countUnindexed(),
          asked.distrustReason(),
        ]);
        known = { beat, parked_streams, unindexed_turns, doubt, at: now() };
        failure = undefined;
      } catch (error) {
        if (isTurnlogError(error, 'store_unavailable')) failure = error;
        throw error;
      }
    },
    health() {
      if (failure) throw failure;
      if (!known || now() - known.at > KNOWN_FOR_MS)
        throw storeUnavailableError('The database of the read models does not answer.');
      const { parked_streams, unindexed_turns, doubt } = known;
      const lag = lagOf(known);
      const caught_up = lag.caught_up && doubt === undefined;
      return { ...lag, caught_up, doubt, unindexed_turns, parked_streams };
    },
  };
}
