import { readFileSync } from 'node:fs';
import { VERSION } from '../../infra/sqlite/readModels/version.ts';

/** The version of this release, and of the read models that it keeps. */
export function versions(): { turnlog: string; read_models: number; node: string } {
  const file = new URL('../../package.json', import.meta.url);
  const { version } = JSON.parse(readFileSync(file, 'utf8')) as { version: string };
  return { turnlog: version, read_models: VERSION.number, node: process.versions.node };
}
