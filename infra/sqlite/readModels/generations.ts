/**
 * The files of the read models: `<folder>/read-models/v<schema version>.<generation>.db`, and `….building.db` for one that a
 * rebuild has not finished. The highest finished generation is the current one.
 */
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
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
    return match ? [{ name, version: Number(match[1]), generation: Number(match[2]), building: match[3] !== undefined }] : [];
  });
}

const highest = (folder: string, building: boolean): number | undefined =>
  list(folder)
    .filter((entry) => entry.version === SCHEMA_VERSION && entry.building === building)
    .map((entry) => entry.generation)
    .toSorted((a, b) => b - a)[0];

/** The highest finished generation of this schema version; undefined when there is none. */
export const currentGeneration = (folder: string): number | undefined => highest(folder, false);

/** The generation that a rebuild is to build: the one that an interrupted rebuild began, else the next. */
export function buildingGeneration(folder: string): number {
  const next = (currentGeneration(folder) ?? 0) + 1;
  return Math.max(highest(folder, true) ?? 0, next);
}

export const generationFile = (folder: string, generation: number): string => join(readModelsFolder(folder), `v${SCHEMA_VERSION}.${generation}.db`);
export const buildingFile = (folder: string, generation: number): string => join(readModelsFolder(folder), `v${SCHEMA_VERSION}.${generation}.building.db`);

export function removeDatabase(file: string): void {
  for (const suffix of ['', '-wal', '-shm']) rmSync(file + suffix, { force: true });
}

/** Deletes what `generation` replaces: its predecessors, abandoned rebuilds and the files of older schema versions. */
export function retireGenerationsBefore(folder: string, generation: number): void {
  for (const entry of list(folder)) {
    const replaced = entry.version < SCHEMA_VERSION || (entry.version === SCHEMA_VERSION && (entry.building ? entry.generation <= generation : entry.generation < generation));
    if (replaced) removeDatabase(join(readModelsFolder(folder), entry.name));
  }
}
