/**
 * The files of the read models: `<folder>/read-models/v<version>.<generation>.db`, and
 * `….building.db` until a rebuild has finished it. The highest finished generation of a version is its
 * current one.
 */
import { existsSync, readdirSync, rmSync } from 'node:fs';
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

function listGenerations(folder: string): Generation[] {
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

const highestGeneration = (
  folder: string,
  building: boolean,
  { number }: Numbered,
): number | undefined =>
  listGenerations(folder)
    .filter((entry) => entry.version === number && entry.building === building)
    .map((entry) => entry.generation)
    .toSorted((a, b) => b - a)[0];

/** The highest finished generation of the version; undefined when there is none. */
export const currentGeneration = (
  folder: string,
  version: Numbered = VERSION,
): number | undefined => highestGeneration(folder, false, version);

/**
 * The generation for a rebuild to fill: the one that a running or interrupted rebuild has begun, else
 * the next.
 */
export const buildingGeneration = (folder: string, version: Numbered = VERSION): number =>
  highestGeneration(folder, true, version) ?? (currentGeneration(folder, version) ?? 0) + 1;

const fileNameOf = (generation: number, { number }: Numbered): string => `v${number}.${generation}`;

export const generationFile = (
  folder: string,
  generation: number,
  version: Numbered = VERSION,
): string => join(readModelsFolder(folder), `${fileNameOf(generation, version)}.db`);

export const buildingFile = (
  folder: string,
  generation: number,
  version: Numbered = VERSION,
): string => join(readModelsFolder(folder), `${fileNameOf(generation, version)}.building.db`);

/** The copy that a running or interrupted verification compares the rows with. */
export const verifyingFile = (folder: string, { number }: Numbered = VERSION): string =>
  join(readModelsFolder(folder), `v${number}.verifying.db`);

export function removeDatabase(file: string): void {
  for (const suffix of ['', '-wal', '-shm']) rmSync(file + suffix, { force: true });
}

/** True while a rebuild fills the file: it holds the lock until it has finished. */
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
 * versions, older or newer. Only one server runs in a folder, so no process reads them any more; after
 * a rollback the other release fills its files again. A running rebuild keeps its file and publishes
 * the generation after the current one.
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
  for (const entry of listGenerations(folder).filter(isOld)) {
    const file = join(readModelsFolder(folder), entry.name);
    if (!entry.building || !isBeingBuilt(file)) removeDatabase(file);
  }
}

/** The checkpoint of a file that no process writes; undefined if it has none or can't be read. */
function readPosition(file: string): Position | undefined {
  const database = new DatabaseSync(file, { timeout: 0 });
  try {
    const row = database.prepare('SELECT event_position AS position FROM checkpoint').get();
    return (row?.['position'] as Position | null | undefined) ?? undefined;
  } catch {
    return undefined;
  } finally {
    database.close();
  }
}

/**
 * Deletes the files of interrupted rebuilds and verifications that end before an erasure and so may
 * contain erased data. A running one will apply the erasure itself, unless it is killed before: returns
 * false if there is one, or if a file can't be examined now, such as one of another user.
 */
export function deleteUnerasedLeftovers(
  folder: string,
  erasedAt: Position,
  { number }: Numbered,
): boolean {
  const copy = verifyingFile(folder, { number });
  const begun = listGenerations(folder)
    .filter(({ building, version }) => building && version === number)
    .map(({ name }) => join(readModelsFolder(folder), name));
  let isDone = true;
  for (const file of existsSync(copy) ? [...begun, copy] : begun) {
    try {
      if (isBeingBuilt(file)) isDone = false;
      else if ((readPosition(file) ?? '') < erasedAt) removeDatabase(file);
    } catch {
      isDone = false;
    }
  }
  return isDone;
}
