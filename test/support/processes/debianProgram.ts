import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { describe, test } from '@jest/globals';

/** Where Debian puts what only root is expected to start, besides what the PATH has. */
const FOLDERS = ['/usr/sbin', '/usr/local/sbin', ...(process.env['PATH'] ?? '').split(delimiter)];

/** The path of a program that comes with a Debian package; undefined where that is not installed. */
export const debianProgram = (name: string): string | undefined =>
  FOLDERS.map((folder) => join(folder, name)).find((path) => existsSync(path));

/** Whether .ci/run installs Debian's packages on this machine. */
const canInstall = (): boolean =>
  process.getuid?.() === 0 && debianProgram('apt-get') !== undefined;

/**
 * Stands in for a suite whose program is not installed: one skipped test that names its package, and
 * with CI=true a failure if this machine can install it.
 */
export function withoutProgram(suite: string, name: string): void {
  const why = `needs ${name}: apt-get install ${name}`;
  describe(suite, () => {
    if (process.env['CI'] === 'true' && canInstall())
      test('runs', () => Promise.reject(new Error(`${suite} ${why}`)));
    else test.skip(why, () => undefined);
  });
}
