/**
 * The files of the read models: `<folder>/read-models/v<schema version>.<generation>.db`, and `….building.db` for one that a
 * rebuild has not finished. The highest finished generation is the current one.
 */
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { isBusy } from '../eventStoreErrors.ts';
import { SCHEMA_VERSION } from './schema.ts';

interface Generation {
  name: string;
  version: number;
  generation: number;
  building: boolean;
}

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

const highest = (folder: string, building: boolean): number | undefined =>
  list(folder)
    .filter((entry) => entry.version === SCHEMA_VERSION && entry.building === building)
    .map((entry) => entry.generation)
    .toSorted((a, b) => b - a)[0];

/** The highest finished generation of this schema version; undefined when there is none. */
export const currentGeneration = (folder: string): number | undefined => highest(folder, false);

/** The generation that a rebuild is to build: the one that a rebuild at work or an interrupted one began, else the next. */
export const buildingGeneration = (folder: string): number =>
  highest(folder, true) ?? (currentGeneration(folder) ?? 0) + 1;

export const generationFile = (folder: string, generation: number): string =>
  join(readModelsFolder(folder), `v${SCHEMA_VERSION}.${generation}.db`);
export const buildingFile = (folder: string, generation: number): string =>
  join(readModelsFolder(folder), `v${SCHEMA_VERSION}.${generation}.building.db`);

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
    return isBusy(error);
  } finally {
    database.close();
  }
}

/**
 * Deletes what `generation` replaces: its predecessors, abandoned rebuilds and the files of older schema versions.
 * A rebuild that is at work keeps its file and publishes the generation after the current one.
 */
export function retireGenerationsBefore(folder: string, generation: number): void {
  const isReplaced = (entry: Generation): boolean => {
    if (entry.version !== SCHEMA_VERSION) return entry.version < SCHEMA_VERSION;
    if (!entry.building) return entry.generation < generation;
    return (
      entry.generation <= generation && !isBeingBuilt(join(readModelsFolder(folder), entry.name))
    );
  };
  for (const entry of list(folder).filter(isReplaced))
    removeDatabase(join(readModelsFolder(folder), entry.name));
}
