import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PROJECTION_LOGIC } from '../../../shared/readModels/version.ts';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const VERSION_FILE = 'shared/readModels/version.ts';

/**
 * A copy of the project as a release with another version of the read models: the folder, and what
 * deletes it.
 */
export async function copyAsOtherRelease(): Promise<{
  folder: string;
  remove: () => Promise<void>;
}> {
  const folder = await mkdtemp(join(tmpdir(), 'turnlog-release-'));
  for (const part of ['services', 'shared', 'infra', 'package.json'])
    await cp(join(root, part), join(folder, part), { recursive: true });
  await mkdir(join(folder, 'data'));
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
  const file = join(folder, VERSION_FILE);
  const line = `PROJECTION_LOGIC = ${PROJECTION_LOGIC};`;
  const text = await readFile(file, 'utf8');
  if (!text.includes(line)) throw new Error(`${VERSION_FILE} does not have ${line}`);
  await writeFile(file, text.replace(line, `PROJECTION_LOGIC = ${PROJECTION_LOGIC + 1_000};`));
  return { folder, remove: () => rm(folder, { recursive: true }) };
}
