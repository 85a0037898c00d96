import { createSerialQueue } from '../../../shared/lib/concurrency/serialQueue.ts';
import { createBackoff } from '../../../shared/lib/time/backoff.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { sleepUntilAborted } from '../../../shared/lib/time/sleep.ts';
import type { TileStore } from '../../../shared/transparency/tileStore.ts';
import type { WitnessPolicy } from '../../../shared/transparency/witness.ts';
import { requestCosignature } from '../../../shared/transparency/kept/requestCosignature.ts';
import {
  witnessesReport,
  parseCosignedCheckpoint,
  noteWithCosignatures,
  type WitnessState,
  type CosignedCheckpoint,
  type WitnessesReport,
} from './witnesses.ts';

/** Publishes checkpoints with the cosignatures of witnesses. */
export interface Cosigner {
  /**
   * Publishes a signed checkpoint when it has the wanted number of cosignatures, or when the witnesses
   * that may still cosign have taken too long. One at a time.
   */
  publish(note: string): Promise<void>;
  /** Resolves when no request and no publication is in flight any more. */
  close(): Promise<void>;
}

interface CosignerOptions extends WitnessPolicy {
  tiles: Pick<TileStore, 'read' | 'publish'>;
  /** The checkpoint that is served until the next one. */
  served: string | undefined;
  /** Called with each change. */
  onReport: (report: WitnessesReport) => void;
  logger: Record<'info' | 'warn', (fields: object, message: string) => void>;
  /** Other times than those of LIMITS, for tests. */
  times?: Partial<Record<'publishMs' | 'retryMs', number>>;
}

const FIRST_RETRY_MS = 1_000;

/** Requests cosignatures of the newest checkpoint only, from each witness one at a time. */
export function startCosigner(options: CosignerOptions): Cosigner {
  const { wanted, witnesses, tiles, served, onReport, logger, times } = options;
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
  let lacksCosignatures = isShort(newest);
  for (const witness of all) if (newest?.lines.has(witness.name)) witness.size = newest.size;
  const writes = createSerialQueue();
  /** Resolves at the next change of the newest checkpoint, its cosignatures, or a witness. */
  let nextChange = Promise.withResolvers<void>();

  function isShort(target: Pick<CosignedCheckpoint, 'lines'> | undefined): boolean {
    return target !== undefined && target.lines.size < wanted;
  }

  function changed(): void {
    if (all.length > 0)
      onReport(witnessesReport({ wanted, isShort: lacksCosignatures }, all, published));
    nextChange.resolve();
    nextChange = Promise.withResolvers();
  }

  /** Writes one after another, so that an older checkpoint never replaces a newer one. */
  const write = (target: CosignedCheckpoint): Promise<void> =>
    writes.run(() => tiles.publish(noteWithCosignatures(target)));

  function setTrouble(witness: WitnessState, trouble: string | undefined): void {
    if (trouble === witness.trouble) return;
    witness.trouble = trouble;
    if (trouble === undefined) logger.info({ witness: witness.name }, 'a witness cosigns again');
    else logger.warn({ witness: witness.name, reason: trouble }, 'a witness does not cosign');
  }

  async function addCosignature(
    witness: WitnessState,
    target: CosignedCheckpoint,
    line: string,
  ): Promise<void> {
    witness.size = target.size;
    target.lines.set(witness.name, line);
    if ((target === newest || target === published) && !isShort(target)) lacksCosignatures = false;
    if (target !== published) return;
    await write(target).catch((error: unknown) =>
      logger.warn({ err: error }, 'a cosignature could not be published'),
    );
  }

  async function requestCosignatures(witness: WitnessState): Promise<void> {
    const { signal } = closing;
    const pauses = createBackoff({ firstMs: FIRST_RETRY_MS, longestMs: retryMs, spread: [0.5, 1] });
    while (!signal.aborted) {
      const target = newest;
      if (!target || target.lines.has(witness.name)) {
        await nextChange.promise;
        continue;
      }
      const response = await requestCosignature(
        { witness: witness.witness, tiles, signal },
        target,
        witness.size,
      );
      if (signal.aborted) return;
      if ('line' in response) {
        pauses.reset();
        setTrouble(witness, undefined);
        await addCosignature(witness, target, response.line);
        changed();
      } else {
        setTrouble(witness, response.trouble);
        changed();
        await sleepUntilAborted(pauses.next(), { signal, ref: false });
      }
    }
  }

  /** Returns true while a wanted cosignature may come soon. */
  const isPending = ({ lines }: CosignedCheckpoint): boolean =>
    isShort({ lines }) &&
    all.some(({ name, trouble }) => trouble === undefined && !lines.has(name));

  async function waitUntilCosigned(target: CosignedCheckpoint): Promise<void> {
    const late = AbortSignal.any([closing.signal, AbortSignal.timeout(publishMs)]);
    const tooLate = new Promise((resolve) => late.addEventListener('abort', resolve));
    while (!late.aborted && isPending(target)) await Promise.race([nextChange.promise, tooLate]);
  }

  const requesting = all.map(requestCosignatures);
  changed();

  return {
    async publish(note) {
      const target = parseCosignedCheckpoint(note, all);
      newest = target;
      lacksCosignatures = true;
      changed();
      await waitUntilCosigned(target);
      published = target;
      changed();
      await write(target);
    },
    async close() {
      closing.abort();
      changed();
      await Promise.all([...requesting, writes.idle()]);
    },
  };
}
