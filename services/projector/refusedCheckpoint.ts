import { isTurnlogError, type TurnlogError } from '../../shared/errors.ts';
import { canBePosition } from '../../shared/eventlog/positions.ts';
import { pauseAtMost } from '../../shared/pause.ts';
import type { Position } from '../../shared/ports/eventStore.ts';
import { createEndOfLog } from '../../shared/eventlog/endOfLog.ts';
import type { Projection } from './projection.ts';

/**
 * A cluster whose leader has just changed may know less of the log for a moment: it is looked at so
 * often, so far apart, and without a failure of another kind in between.
 */
const LOOKS = 3;
const LOOK_MS = 2_500;
/**
 * The end of the log is half of what an operator wants to know, is asked for once, and nothing can
 * be built before its store answers.
 */
const END_LIMIT_MS = 2_000;

/**
 * A stored checkpoint that is no position of the log, for good. What was projected up to it may be
 * missing anything.
 */
export interface RefusedCheckpoint {
  checkpoint: Position;
  /** Of the log when it refused; undefined where it was empty, or its store did not say. */
  end: Position | undefined;
  /** The log has accepted it since, because it has grown past it. */
  outgrown: boolean;
}

/** The same as half a sentence. */
export function describeRefusal({ checkpoint, end, outgrown }: RefusedCheckpoint): string {
  const which = (verb: string): string => (end === undefined ? '' : `, which ${verb} at ${end}`);
  if (!outgrown) return `their checkpoint ${checkpoint} is no place of the log${which('ends')}`;
  return `their checkpoint ${checkpoint} was no place of the log${which('ended')} before it grew`;
}

/** The same where only the checkpoint is known that was given up; undefined where none was. */
export const healingOf = (checkpoint: Position | undefined): string | undefined =>
  checkpoint && describeRefusal({ checkpoint, end: undefined, outgrown: false });

/** The log does not begin a subscription at this checkpoint. */
export class CheckpointRefusal extends Error {
  readonly checkpoint: Position;

  constructor(checkpoint: Position, cause: TurnlogError) {
    super(cause.message, { cause });
    this.checkpoint = checkpoint;
  }
}

/** What the start of a subscription threw, as a refusal of the checkpoint if it is one. */
export const asRefusal = (error: unknown, checkpoint: Position | undefined): unknown =>
  checkpoint !== undefined && isTurnlogError(error, 'position_invalid')
    ? new CheckpointRefusal(checkpoint, error)
    : error;

/** Judges the refusals of one projection. */
export function createRefusalJudge({
  log,
  logger,
  signal,
}: Pick<Projection, 'log' | 'logger' | 'signal'>) {
  const endOfLog = createEndOfLog(log, END_LIMIT_MS);
  /** In a row, without a failure of another kind between them. */
  let looks = 0;
  /**
   * The first refusal of the checkpoint; a projection that starts over, in another process say,
   * knows none.
   */
  let doubted: RefusedCheckpoint | undefined;

  return {
    /**
     * The log begins at the checkpoint. Returns it all the same where it was refused before: others
     * may have written past it in the meantime, and what they wrote up to it would be in no row. A
     * node that lagged, or a leader that knew less for a moment, can't be told from that and costs
     * a rebuild as well: the safe side.
     */
    accepted(checkpoint: Position | undefined): RefusedCheckpoint | undefined {
      looks = 0;
      return doubted?.checkpoint === checkpoint ? doubted : undefined;
    },

    /**
     * Something else went wrong: a store that was away may know less for a moment once it is back.
     */
    interrupted(): void {
      looks = 0;
    },

    /**
     * Resolves with what is certain; undefined, after a pause, where the checkpoint is to be looked
     * at again.
     */
    async judge({ checkpoint, cause }: CheckpointRefusal): Promise<RefusedCheckpoint | undefined> {
      const end = await endOfLog.latest();
      if (doubted?.checkpoint !== checkpoint) doubted = { checkpoint, end, outgrown: true };
      looks += 1;
      if (!canBePosition(checkpoint) || looks >= LOOKS) return { checkpoint, end, outgrown: false };
      const again = { err: cause, checkpoint, end, looks_left: LOOKS - looks, look_in_ms: LOOK_MS };
      if (looks === 1)
        logger.warn(
          again,
          'The log refuses the checkpoint of the read models; it is looked at again',
        );
      await pauseAtMost(LOOK_MS, { signal });
      return undefined;
    },
  };
}
