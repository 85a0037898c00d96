import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { dataFolderError } from '../../infra/sqlite/dataFolder.ts';
import { systemIds } from './system.ts';

/**
 * The name of the folder's server, made at the first start. The server lock sees to it that only
 * one process has it. Errors: `configuration_invalid` when it can't be read or written.
 */
export function instanceIdOf(folder: string): string {
  const file = join(folder, 'instance-id');
  try {
    const known = existsSync(file) ? readFileSync(file, 'utf8').trim() : '';
    if (known !== '') return known;
    const made = systemIds.uuid();
    writeFileSync(file, `${made}\n`, { mode: 0o600 });
    return made;
  } catch (error) {
    throw dataFolderError(folder, error);
  }
}
