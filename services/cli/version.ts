import { readFileSync } from 'node:fs';
import { READ_MODELS_VERSION } from '../compose/operatorReadModels.ts';

/** The version of this release, and of the read models that it keeps. */
export function versions(): { turnlog: string; read_models: number; node: string } {
  const file = new URL('../../package.json', import.meta.url);
  const { version } = JSON.parse(readFileSync(file, 'utf8')) as { version: string };
  return { turnlog: version, read_models: READ_MODELS_VERSION, node: process.versions.node };
}
