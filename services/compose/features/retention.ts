import type { CommandContext } from '../../../shared/commandHandling/context.ts';
import type { ErasedStream } from '../../../shared/erasure/eraseStream.ts';
import { eraseWithReplays, readReplaysAt } from '../../../shared/erasure/eraseWithReplays.ts';
import type { HandleContext } from '../../../shared/commandHandling/handle.ts';
import {
  createClockJudge,
  type Clocks,
  type JudgedTime,
} from '../../../shared/erasure/retention/judgeClock.ts';
import { sweepSessions } from '../../../shared/erasure/retention/sweepSessions.ts';
import { decodeEvent } from '../../../shared/eventlog/codec.ts';
import { isValidMetadata } from '../../../shared/eventlog/domainEvent.ts';
import { belongsIn } from '../../../shared/eventlog/eventTypes.ts';
import { sessionStream } from '../../../shared/eventlog/streams.ts';
import type { Checkpoint, EventLog, Position } from '../../../shared/ports/eventStore.ts';
import type { Instances } from '../../../shared/ports/instances.ts';
import { retentionPart } from '../../process/upkeep/retention.ts';
import type { ProcessPart } from '../../process/processParts.ts';
import { systemClock } from '../system.ts';

const monotonic = (): number => performance.now();

/** The time of the event at a position; undefined if it is not an event of Turnlog. */
async function readRecordedAt(
  { eventAt }: Pick<EventLog, 'eventAt'>,
  position: Position | undefined,
): Promise<number | undefined> {
  const event = position === undefined ? undefined : await eventAt(position);
  if (!event || !belongsIn(event.stream, event.type)) return undefined;
  const { metadata } = decodeEvent(event);
  return isValidMetadata(metadata) ? Date.parse(metadata.recorded_at) : undefined;
}

interface ClockSources extends Pick<Clocks, 'now' | 'own'> {
  /** The position of the newest known event of the log. */
  newest: () => Promise<Position | undefined>;
}

/**
 * Creates the clock judge of a process, for sweeps and for requests: `now` is the deciding clock,
 * `own` the local one if that is another.
 */
export const judgeClock = (
  store: Pick<EventLog, 'eventAt'>,
  { newest, ...clocks }: ClockSources,
): (() => Promise<JudgedTime>) =>
  createClockJudge({
    ...clocks,
    monotonic,
    newest: async () => readRecordedAt(store, await newest()),
  });

interface DatabaseClock {
  store: Pick<EventLog, 'eventAt'>;
  instances: Pick<Instances, 'list'>;
  readModels: { checkpoint: () => Promise<Checkpoint | undefined> };
}

/** The clock judge of a replica, where the database's clock decides. */
export const judgeDatabaseClock = ({ store, instances, readModels }: DatabaseClock) =>
  judgeClock(store, {
    now: async () => (await instances.list()).now,
    own: systemClock.now,
    newest: async () => (await readModels.checkpoint())?.position,
  });

/** How long a sweep waits for the read models to show the events that it recorded. */
const SHOWN_WITHIN_MS = 10_000;

interface RetentionSweepOptions {
  judge: () => Promise<JudgedTime>;
  /** Does the work unless another process does it: see RetentionOptions. */
  runExclusively: (work: (signal: AbortSignal) => Promise<void>) => Promise<boolean>;
  /** Evicts an erased stream from the caches of this process. */
  onErased: (erased: ErasedStream) => void;
}

/** The part that erases sessions beyond the maximum retention of their account. */
export function retentionSweepPart(
  context: HandleContext & Pick<CommandContext, 'readModels' | 'logger'>,
  { judge, runExclusively, onErased }: RetentionSweepOptions,
): ProcessPart {
  const { readModels, logger } = context;
  return retentionPart({
    judge,
    runExclusively,
    logger,
    isNeeded: async () =>
      (await readModels.listAccounts()).some(
        ({ retention }) => retention.maximum_days !== undefined,
      ),
    sweep(now, signal) {
      const startedAt = monotonic();
      // Continue from the judged time, whatever the system clock does meanwhile.
      const clock = { now: () => Math.round(now + monotonic() - startedAt) };
      return sweepSessions({
        readModels,
        logger,
        now,
        signal,
        async erase({ session_id, account_id }) {
          const actor = { account_id, key_id: 'system', request_id: 'retention' };
          const stream = sessionStream(session_id);
          const replaysAt = readReplaysAt(readModels, SHOWN_WITHIN_MS);
          const erasing = { ...context, clock, replaysAt, onErased };
          onErased(await eraseWithReplays(erasing, stream, { reason: 'retention' }, actor));
        },
      });
    },
  });
}
