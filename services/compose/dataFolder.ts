import { mkdirSync } from 'node:fs';
import { resolve } from 'node:path';
import { TurnlogError } from '../../shared/errors.ts';

/** Makes a folder that only its owner can read. Errors: `configuration_invalid` when that is not possible. */
export function prepareDataFolder(path: string): string {
  const folder = resolve(path);
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new TurnlogError(
      'configuration_invalid',
      `The data folder ${folder} can't be made; set DATA_DIR to a folder that this user may write.`,
      { cause: error },
    );
  }
  return folder;
}
