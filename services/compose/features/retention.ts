import { resolve } from 'node:path';
import type { CommandContext } from '../../../shared/commandHandling/context.ts';
import type { ErasedStream } from '../../../shared/erasure/eraseStream.ts';
import {
  eraseWithReplays,
  createUpToDateReader,
  SHOWN_WITHIN_MS,
} from '../../../shared/erasure/eraseWithReplays.ts';
import type { HandleContext } from '../../../shared/commandHandling/handle.ts';
import {
  createClockJudge,
  type ClockJudge,
  type Clocks,
} from '../../../shared/erasure/retention/judgeClock.ts';
import {
  keepTime,
  readConfirmedBefore,
  readKeptTime,
  readRecordedBefore,
} from '../../../shared/erasure/retention/retentionStreams.ts';
import type { ConfirmationRule } from '../../../shared/erasure/retention/selectAccounts.ts';
import { sweepSessions } from '../../../shared/erasure/retention/sweepSessions.ts';
import type { StreamSource } from '../../../shared/eventlog/reading/reportDamage.ts';
import type { Config } from '../../../shared/lib/config/config.ts';
import type { TileReader } from '../../../shared/transparency/tileStore.ts';
import { parseVkey } from '../../../shared/transparency/tlog/noteKeys.ts';
import { witnessedTime } from '../../../shared/transparency/witnessTime.ts';
import { readWitnessesFile } from '../../../infra/witness/witnessesFile.ts';
import { decodeEvent } from '../../../shared/eventlog/codec.ts';
import { isValidMetadata } from '../../../shared/eventlog/domainEvent.ts';
import { belongsIn } from '../../../shared/eventlog/eventTypes.ts';
import { sessionStream } from '../../../shared/eventlog/streams.ts';
import type { Checkpoint, EventLog, Position } from '../../../shared/ports/eventStore.ts';
import type { Instances } from '../../../shared/ports/instances.ts';
import { retentionPart, type RetentionOptions } from '../../process/upkeep/retention.ts';
import type { ProcessPart } from '../../process/processParts.ts';
import { systemClock } from '../system.ts';

const HOUR_MS = 3_600_000;

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

interface ClockSources
  extends
    Pick<Clocks, 'now' | 'own' | 'isIndependent' | 'evidence'>,
    Partial<Pick<Clocks, 'monotonic'>> {
  /** The position of the newest known event of the log. */
  newest: () => Promise<Position | undefined>;
}

/**
 * Creates the clock judge of a process, for sweeps and for requests: `now` is the deciding clock,
 * `own` the local one if that is another.
 */
export const judgeClock = (
  source: StreamSource & { store: Pick<EventLog, 'eventAt' | 'firstEvent'> },
  { newest, ...clocks }: ClockSources,
): ClockJudge =>
  createClockJudge({
    monotonic,
    ...clocks,
    kept: () => readKeptTime(source),
    async newest() {
      const { store } = source;
      return (await store.firstEvent()) ? readRecordedAt(store, await newest()) : 'empty';
    },
  });

interface DatabaseClock extends StreamSource {
  store: StreamSource['store'] & Pick<EventLog, 'eventAt' | 'firstEvent'>;
  instances: Pick<Instances, 'list'>;
  readModels: { checkpoint: () => Promise<Checkpoint | undefined> };
}

/** The clock judge of a replica, where the database's clock decides. */
export const judgeDatabaseClock = (
  { instances, readModels, ...source }: DatabaseClock,
  clocks: Pick<Clocks, 'isIndependent' | 'evidence'>,
): ClockJudge =>
  judgeClock(source, {
    ...clocks,
    now: async () => (await instances.list()).now,
    own: systemClock.now,
    newest: async () => (await readModels.checkpoint())?.position,
  });

/** The clocks of the configured witnesses: a time that has passed, from their cosignatures. */
export async function witnessEvidence(
  { LOG_WITNESSES_FILE: file }: Config,
  tiles: Pick<TileReader, 'readCheckpoint'>,
): Promise<Pick<Clocks, 'evidence'>> {
  if (file === undefined) return {};
  const { wanted, witnesses } = await readWitnessesFile(resolve(file));
  const keys = witnesses.map(({ vkey }) => parseVkey(vkey));
  return {
    async evidence() {
      const checkpoint = await tiles.readCheckpoint();
      return checkpoint === undefined ? undefined : witnessedTime(checkpoint, { keys, wanted });
    },
  };
}

interface RetentionSweepOptions extends ClockJudge, Pick<RetentionOptions, 'pauses'> {
  /** The share of an account's sessions that is erased without a confirmation, in percent. */
  percent: number;
  /** Does the work unless another process does it: see RetentionOptions. */
  runExclusively: (work: (signal: AbortSignal) => Promise<void>) => Promise<boolean>;
  /** Evicts an erased stream from the caches of this process. */
  onErased: (erased: ErasedStream) => void;
}

/** Calls a function of a time once for each hour, with its beginning. */
function memoizeByHour<Result>(find: (time: number) => Promise<Result>) {
  const lookups = new Map<number, Promise<Result>>();
  return (time: number): Promise<Result> => {
    const hour = Math.floor(time / HOUR_MS) * HOUR_MS;
    const lookup = lookups.get(hour) ?? find(hour);
    lookups.set(hour, lookup);
    return lookup;
  };
}

/** The part that erases sessions beyond the maximum retention of their account. */
export function retentionSweepPart(
  context: HandleContext & Pick<CommandContext, 'readModels' | 'logger'>,
  { judge, provenTime, percent, runExclusively, onErased, ...options }: RetentionSweepOptions,
): ProcessPart {
  const { readModels, logger } = context;
  const confirmation: ConfirmationRule = {
    percent,
    confirmedBefore: (accountId) => readConfirmedBefore(context, accountId),
  };
  const unerasable = new Set<string>();
  return retentionPart({
    ...options,
    judge,
    runExclusively,
    logger,
    isNeeded: async () =>
      (await readModels.listAccounts()).some(
        ({ retention }) => retention.maximum_days !== undefined,
      ),
    async keepTime(leastMs) {
      const accounts = await readModels.listAccounts();
      if (!accounts.some(({ retention }) => Object.keys(retention).length > 0)) return;
      const proven = await provenTime();
      if (!proven || proven.time - (proven.kept ?? -Infinity) < leastMs) return;
      await keepTime(context, proven.time, proven.confirmations);
      // The judge continues from the recorded state.
      await provenTime();
    },
    sweep(now, signal) {
      const startedAt = monotonic();
      // Continue from the judged time, whatever the system clock does meanwhile.
      const clock = { now: () => Math.round(now + monotonic() - startedAt) };
      const findRecorded = memoizeByHour((before) => readRecordedBefore(context, before));
      return sweepSessions({
        readModels,
        logger,
        confirmation,
        unerasable,
        now,
        signal,
        async erase({ session_id, account_id }) {
          const actor = { account_id, key_id: 'system', request_id: 'retention' };
          const stream = sessionStream(session_id);
          const erasing = {
            ...context,
            clock,
            dependentsAt: createUpToDateReader(readModels, SHOWN_WITHIN_MS),
            recordedBefore: findRecorded,
            onErased,
          };
          onErased(await eraseWithReplays(erasing, stream, { reason: 'retention' }, actor));
        },
      });
    },
  });
}
