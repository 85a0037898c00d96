import { createBackoff } from '../../../shared/lib/time/backoff.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { sleepUntilAborted } from '../../../shared/lib/time/sleep.ts';
import type { TileStore } from '../../../shared/transparency/tileStore.ts';
import type { WitnessPolicy } from '../../../shared/transparency/witness.ts';
import { requestCosignature } from './askWitness.ts';
import {
  witnessesReport,
  parseCosignedCheckpoint,
  noteWithCosignatures,
  type WitnessState,
  type CosignedCheckpoint,
  type WitnessesReport,
} from './witnessed.ts';

/** Publishes checkpoints with the cosignatures of witnesses. */
export interface Cosigner {
  /**
   * Publishes a checkpoint that the log has signed, as soon as it has the cosignatures that are wanted,
   * or who may still give one has taken too long. One at a time. Errors: those of TileStore.publish.
   */
  publish(note: string): Promise<void>;
  /** Resolves when nobody is asked any more, and nothing is published. */
  close(): Promise<void>;
}

interface Cosigning extends WitnessPolicy {
  tiles: Pick<TileStore, 'read' | 'publish'>;
  /** The checkpoint that is served already, and goes on being so until the next one. */
  served: string | undefined;
  /** Hears of each change. */
  onReport: (report: WitnessesReport) => void;
  logger: Record<'info' | 'warn', (fields: object, message: string) => void>;
  /** Other times than those of LIMITS, for tests. */
  times?: Partial<Record<'publishMs' | 'retryMs', number>>;
}

const FIRST_RETRY_MS = 1_000;

/** Witnesses are asked about the newest checkpoint only, each about one at a time. */
export function startCosigner(cosigning: Cosigning): Cosigner {
  const { wanted, witnesses, tiles, served, onReport, logger, times } = cosigning;
  const { publishMs, retryMs } = { ...LIMITS.witness, ...times };
  const all: WitnessState[] = witnesses.map((witness) => ({
    witness,
    name: witness.key.name,
    size: 0,
    trouble: undefined,
  }));
  const closing = new AbortController();
  let published = served === undefined ? undefined : parseCosignedCheckpoint(served, all);
  let newest = published;
  let short = isShort(newest);
  for (const known of all) if (newest?.lines.has(known.name)) known.size = newest.size;
  let writing: Promise<unknown> = Promise.resolve();
  /** Resolves at the next change: of the newest checkpoint, its cosignatures, or a witness. */
  let change = Promise.withResolvers<void>();

  function isShort(target: Pick<CosignedCheckpoint, 'lines'> | undefined): boolean {
    return target !== undefined && target.lines.size < wanted;
  }

  function changed(): void {
    if (all.length > 0) onReport(witnessesReport({ wanted, isShort: short }, all, published));
    change.resolve();
    change = Promise.withResolvers();
  }

  /** One after the other, so that an older checkpoint never replaces a newer one. */
  function write(target: CosignedCheckpoint): Promise<void> {
    const written = writing.then(() => tiles.publish(noteWithCosignatures(target)));
    writing = written.catch(() => undefined);
    return written;
  }

  function tell(known: WitnessState, trouble: string | undefined): void {
    if (trouble === known.trouble) return;
    known.trouble = trouble;
    if (trouble === undefined) logger.info({ witness: known.name }, 'a witness cosigns again');
    else logger.warn({ witness: known.name, reason: trouble }, 'a witness does not cosign');
  }

  async function add(known: WitnessState, target: CosignedCheckpoint, line: string): Promise<void> {
    known.size = target.size;
    target.lines.set(known.name, line);
    if ((target === newest || target === published) && !isShort(target)) short = false;
    if (target !== published) return;
    await write(target).catch((error: unknown) =>
      logger.warn({ err: error }, 'a cosignature could not be published'),
    );
  }

  async function follow(known: WitnessState): Promise<void> {
    const { signal } = closing;
    const pauses = createBackoff({ firstMs: FIRST_RETRY_MS, longestMs: retryMs, spread: [0.5, 1] });
    while (!signal.aborted) {
      const target = newest;
      if (!target || target.lines.has(known.name)) {
        await change.promise;
        continue;
      }
      const answer = await requestCosignature(
        { witness: known.witness, tiles, signal },
        target,
        known.size,
      );
      if (signal.aborted) return;
      if ('line' in answer) {
        pauses.reset();
        tell(known, undefined);
        await add(known, target, answer.line);
        changed();
      } else {
        tell(known, answer.trouble);
        changed();
        await sleepUntilAborted(pauses.next(), { signal, ref: false });
      }
    }
  }

  /** True while a cosignature that is wanted may come soon. */
  const isDue = ({ lines }: CosignedCheckpoint): boolean =>
    isShort({ lines }) &&
    all.some(({ name, trouble }) => trouble === undefined && !lines.has(name));

  async function untilCosigned(target: CosignedCheckpoint): Promise<void> {
    const late = AbortSignal.any([closing.signal, AbortSignal.timeout(publishMs)]);
    const tooLate = new Promise((resolve) => late.addEventListener('abort', resolve));
    while (!late.aborted && isDue(target)) await Promise.race([change.promise, tooLate]);
  }

  const following = all.map(follow);
  changed();

  return {
    async publish(note) {
      const target = parseCosignedCheckpoint(note, all);
      newest = target;
      short = true;
      changed();
      await untilCosigned(target);
      published = target;
      changed();
      await write(target);
    },
    async close() {
      closing.abort();
      changed();
      await Promise.all([...following, writing]);
    },
  };
}
