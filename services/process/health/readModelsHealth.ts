import {
  isTurnlogError,
  storeUnavailableError,
  type TurnlogError,
} from '../../../shared/lib/errors/turnlogError.ts';
import type { ParkedStreams, ProjectorBeat } from '../../../shared/ports/readModels.ts';
import type { ProjectionHealth } from '../../../shared/health/health.ts';

/** Read models may lag, and the projector may be silent, for this long before health reports it. */
const LATE_MS = 5_000;
/** An older result means that the database no longer answers. */
const RESULT_VALID_MS = 5_000;

/** The queries of one poll, each second. */
interface ReadModelsProbe {
  projectorBeat(): Promise<ProjectorBeat | undefined>;
  listParkedStreams(): Promise<ParkedStreams>;
  countUnindexed(): Promise<number>;
  /** One sentence on why the read models can't be trusted; undefined if they can. */
  distrustReason(): Promise<string | undefined>;
}

interface ReadModelsHealth {
  /** Runs the queries. */
  poll(): Promise<void>;
  /** The last result. Throws `store_unavailable` if the last poll failed or is too long ago. */
  health(): ProjectionHealth;
}

interface ProbeResult {
  beat: ProjectorBeat | undefined;
  parked_streams: ParkedStreams;
  unindexed_turns: number;
  doubt: string | undefined;
  /** The time of the poll by a monotonic clock, in milliseconds. */
  at: number;
}

const seconds = (ms: number): string => `${Math.round(ms / 1000)} s`;

/** Monitors read models that another process may keep up to date. */
export function monitorReadModels(
  probe: ReadModelsProbe,
  now = (): number => performance.now(),
): ReadModelsHealth {
  const startedAt = now();
  let latest: ProbeResult | undefined;
  let failure: TurnlogError | undefined;

  /** If no projector ever reported, the silence counts from the start of the monitoring. */
  function lagOf({ beat, at }: ProbeResult): Pick<ProjectionHealth, 'caught_up' | 'lag' | 'late'> {
    const silentMs = Math.round(now() - (beat ? at : startedAt) + (beat?.silent_ms ?? 0));
    if (silentMs > LATE_MS)
      return {
        caught_up: false,
        lag: { events: null, ms: silentMs + (beat?.lag.ms ?? 0) },
        late: `No projector keeps the read models up to date: none has reported for ${seconds(silentMs)}.`,
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
          probe.projectorBeat(),
          probe.listParkedStreams(),
          probe.countUnindexed(),
          probe.distrustReason(),
        ]);
        latest = { beat, parked_streams, unindexed_turns, doubt, at: now() };
        failure = undefined;
      } catch (error) {
        if (isTurnlogError(error, 'store_unavailable')) failure = error;
        throw error;
      }
    },
    health() {
      if (failure) throw failure;
      if (!latest || now() - latest.at > RESULT_VALID_MS)
        throw storeUnavailableError('The database of the read models does not answer.');
      const { parked_streams, unindexed_turns, doubt } = latest;
      const lag = lagOf(latest);
      const caught_up = lag.caught_up && doubt === undefined;
      return { ...lag, caught_up, doubt, unindexed_turns, parked_streams };
    },
  };
}
