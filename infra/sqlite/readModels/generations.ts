/**
 * The files of the read models: `<folder>/read-models/v<version>.<generation>.db`, and
 * `….building.db` for one that a rebuild has not finished. The highest finished generation of a
 * version is its current one.
 */
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Position } from '../../../shared/ports/eventStore.ts';
import type { Version } from '../../../shared/readModels/version.ts';
import { isSqliteBusy } from '../eventStore/errors.ts';
import { VERSION } from './schema.ts';

interface Generation {
  name: string;
  version: number;
  generation: number;
  building: boolean;
}

type Numbered = Pick<Version, 'number'>;

const NAME = /^v(\d+)\.(\d+)(\.building)?\.db$/;
export const readModelsFolder = (folder: string): string => join(folder, 'read-models');

function list(folder: string): Generation[] {
  let names: string[];
  try {
    names = readdirSync(readModelsFolder(folder));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
  return names.flatMap((name) => {
    const match = NAME.exec(name);
    return match
      ? [
          {
            name,
            version: Number(match[1]),
            generation: Number(match[2]),
            building: match[3] !== undefined,
          },
        ]
      : [];
  });
}

const highest = (folder: string, building: boolean, { number }: Numbered): number | undefined =>
  list(folder)
    .filter((entry) => entry.version === number && entry.building === building)
    .map((entry) => entry.generation)
    .toSorted((a, b) => b - a)[0];

/** The highest finished generation of the version; undefined when there is none. */
export const currentGeneration = (
  folder: string,
  version: Numbered = VERSION,
): number | undefined => highest(folder, false, version);

/**
 * The generation that a rebuild is to build: the one that a rebuild at work or an interrupted one
 * began, else the next.
 */
export const buildingGeneration = (folder: string, version: Numbered = VERSION): number =>
  highest(folder, true, version) ?? (currentGeneration(folder, version) ?? 0) + 1;

const nameOf = (generation: number, { number }: Numbered): string => `v${number}.${generation}`;

export const generationFile = (
  folder: string,
  generation: number,
  version: Numbered = VERSION,
): string => join(readModelsFolder(folder), `${nameOf(generation, version)}.db`);

export const buildingFile = (
  folder: string,
  generation: number,
  version: Numbered = VERSION,
): string => join(readModelsFolder(folder), `${nameOf(generation, version)}.building.db`);

export function removeDatabase(file: string): void {
  for (const suffix of ['', '-wal', '-shm']) rmSync(file + suffix, { force: true });
}

/** True while a rebuild is at work on the file: it holds the lock from the beginning to the end. */
function isBeingBuilt(file: string): boolean {
  const database = new DatabaseSync(file, { timeout: 0 });
  try {
    database.exec('BEGIN IMMEDIATE; ROLLBACK');
    return false;
  } catch (error) {
    return isSqliteBusy(error);
  } finally {
    database.close();
  }
}

/**
 * Deletes what `generation` replaces: its predecessors, abandoned rebuilds, and the files of other
 * versions, whether they came before this one or after it. One server works in a folder, so no one
 * answers from those any more; a release that comes back fills its own again. A rebuild that is at
 * work keeps its file and publishes the generation after the current one.
 */
export function retireGenerationsBefore(
  folder: string,
  generation: number,
  { number }: Numbered = VERSION,
): void {
  const isOld = (entry: Generation): boolean =>
    entry.version !== number ||
    entry.generation < generation ||
    (entry.building && entry.generation === generation);
  for (const entry of list(folder).filter(isOld)) {
    const file = join(readModelsFolder(folder), entry.name);
    if (!entry.building || !isBeingBuilt(file)) removeDatabase(file);
  }
}

/** The position that a file nobody writes has come to; undefined where it has none to tell. */
function positionOf(file: string): Position | undefined {
  const database = new DatabaseSync(file, { timeout: 0 });
  try {
    const found = database.prepare('SELECT event_position AS position FROM checkpoint').get();
    return (found?.['position'] as Position | null | undefined) ?? undefined;
  } catch {
    return undefined;
  } finally {
    database.close();
  }
}

/**
 * Deletes what interrupted rebuilds left that had not come as far as an erasure: it holds what was
 * erased. One that is at work will come to it. Never throws.
 */
export function dropLeftovers(folder: string, erasedAt: Position, { number }: Numbered): void {
  for (const { name, version, building } of list(folder)) {
    const file = join(readModelsFolder(folder), name);
    if (!building || version !== number || isBeingBuilt(file)) continue;
    if ((positionOf(file) ?? '') < erasedAt) removeDatabase(file);
  }
}
