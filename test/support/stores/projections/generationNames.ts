import { basename } from 'node:path';
import { buildingFile, generationFile } from '../../../../infra/sqlite/readModels/generations.ts';

/** The file name of a generation of the read models, of whatever version this is. */
export const fileName = (generation: number): string => basename(generationFile('', generation));

/** The same while a rebuild fills it. */
export const buildingName = (generation: number): string => basename(buildingFile('', generation));
