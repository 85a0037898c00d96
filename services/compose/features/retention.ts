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

/** When the event there was recorded; undefined where none of ours is. Errors: `store_unavailable`. */
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
  /** Where the newest event of the log is, as far as that is known. Errors: `store_unavailable`. */
  newest: () => Promise<Position | undefined>;
}

/**
 * One judge a process, for sweeps and for requests: by the clock that decides, and the own one where
 * that is another. Errors of what it gives: `store_unavailable`.
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

/** The same for replicas, where the database's clock decides. */
export const judgeDatabaseClock = ({ store, instances, readModels }: DatabaseClock) =>
  judgeClock(store, {
    now: async () => (await instances.list()).now,
    own: systemClock.now,
    newest: async () => (await readModels.checkpoint())?.position,
  });

/** How long a sweep waits for the read models to show what it has recorded. */
const SHOWN_WITHIN_MS = 10_000;

interface RetentionSweepOptions {
  judge: () => Promise<JudgedTime>;
  /** Does the work where no other process does it: Retention. */
  alone: (work: (signal: AbortSignal) => Promise<void>) => Promise<boolean>;
  /** For what this process remembers. */
  onErased: (erased: ErasedStream) => void;
}

/** Erases the sessions that are past the maximum of their account's retention. */
export function retentionSweepPart(
  context: HandleContext & Pick<CommandContext, 'readModels' | 'logger'>,
  { judge, alone, onErased }: RetentionSweepOptions,
): ProcessPart {
  const { readModels, logger } = context;
  return retentionPart({
    judge,
    runExclusively: alone,
    logger,
    isNeeded: async () =>
      (await readModels.listAccounts()).some(
        ({ retention }) => retention.maximum_days !== undefined,
      ),
    sweep(now, signal) {
      const begun = monotonic();
      // Whatever the clock does from here on, the time that was believed goes on.
      const clock = { now: () => Math.round(now + monotonic() - begun) };
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
