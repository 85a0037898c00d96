import type { ResourceUsage } from '../lib/concurrency/resources.ts';
import type { DiskHealth } from '../health/health.ts';
import type { Logger } from '../lib/logger.ts';

/** The size of a file system and what is free of it for this process, in bytes. */
export interface DiskSpace {
  size: number;
  free: number;
}

/** A level of free space: bytes, a percentage of the size, or the smaller of both. 0 never applies. */
export interface FreeLevel {
  bytes: number;
  percent: number;
}

/** Parses an option: `2147483648`, `5%` or `2147483648,5%`. */
export function parseFreeLevel(text: string): FreeLevel {
  const level = { bytes: Infinity, percent: 100 };
  for (const part of text.split(','))
    if (part.endsWith('%')) level.percent = Number(part.slice(0, -1));
    else level.bytes = Number(part);
  return level;
}

const bytesOf = ({ bytes, percent }: FreeLevel, { size }: DiskSpace): number =>
  Math.min(bytes, (size * percent) / 100);

export const isBelow = (level: FreeLevel, space: DiskSpace): boolean =>
  space.free < bytesOf(level, space);

interface Options {
  /** Absolute paths. */
  folders: readonly string[];
  /** Undefined while it can't be measured. */
  measure: (folder: string) => Promise<DiskSpace | undefined>;
  /** Below it, health is degraded. */
  warnFree: FreeLevel;
  /** Below it, appends of clients are refused. */
  stopFree: FreeLevel;
  logger: Pick<Logger, 'warn' | 'error' | 'info'>;
}

export interface DiskWatch {
  /** Measures all folders, and logs changes. Never rejects. */
  poll: () => Promise<void>;
  /** Counts bytes of an append as used until the next poll. */
  appended: (bytes: number) => void;
  isFull: () => boolean;
  /** The folders with little space; undefined while all have enough. */
  health: () => DiskHealth | undefined;
  /** Of the folder with the least space before appends are refused. */
  usage: () => ResourceUsage;
}

type State = 'enough' | 'low' | 'full';
interface Measured extends DiskSpace {
  state: State;
  stopBelow: number;
}

/**
 * Files that an event is written to: the log, its write-ahead log, and the read models. The word index takes
 * up to 16 times the bytes besides, but later, and no more once the disk is full.
 */
const COPIES = 3;

/**
 * Watches the free space of folders. The state of a folder that can't be measured does not change.
 */
export function createDiskWatch({
  folders,
  measure,
  warnFree,
  stopFree,
  logger,
}: Options): DiskWatch {
  const measured = new Map<string, Measured>();
  let sincePoll = 0;

  function stateOf(space: DiskSpace): State {
    if (isBelow(stopFree, space)) return 'full';
    return isBelow(warnFree, space) ? 'low' : 'enough';
  }

  function log(folder: string, state: State, free_bytes: number): void {
    const fields = { folder, free_bytes };
    if (state === 'full')
      logger.error(
        fields,
        'too little disk space is free: nothing new is recorded; reads, cancels, erasures and the ends of runs continue',
      );
    else if (state === 'low') logger.warn(fields, 'little disk space is free');
    else logger.info(fields, 'enough disk space is free again');
  }

  async function look(folder: string): Promise<void> {
    const space = await measure(folder);
    if (!space) return;
    const before = measured.get(folder)?.state ?? 'enough';
    const state = stateOf(space);
    measured.set(folder, { ...space, state, stopBelow: bytesOf(stopFree, space) });
    if (state !== before) log(folder, state, space.free);
  }

  return {
    async poll() {
      sincePoll = 0;
      await Promise.all(folders.map(look));
    },
    appended: (bytes) => void (sincePoll += bytes * COPIES),
    isFull() {
      for (const { free, stopBelow } of measured.values())
        if (stopBelow > 0 && free - sincePoll < stopBelow) return true;
      return false;
    },
    usage() {
      const [fullest] = [...measured.values()].toSorted(
        (one, other) => one.free - one.stopBelow - (other.free - other.stopBelow),
      );
      if (!fullest) return {};
      const { size, free, stopBelow } = fullest;
      return { bytes: { limit: size - stopBelow, used: size - free } };
    },
    health() {
      const short = [...measured].filter(([, { state }]) => state !== 'enough');
      if (short.length === 0) return undefined;
      return {
        state: short.some(([, { state }]) => state === 'full') ? 'full' : 'low',
        folders: short.map(([folder, { free }]) => ({ folder, free_bytes: free })),
      };
    },
  };
}
