import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { describe, test } from '@jest/globals';

/** Where Debian puts what only root is expected to start, besides what the PATH has. */
const FOLDERS = ['/usr/sbin', '/usr/local/sbin', ...(process.env['PATH'] ?? '').split(delimiter)];

/** The path of a program that comes with a Debian package; undefined where that is not installed. */
export const debianProgram = (name: string): string | undefined =>
  FOLDERS.map((folder) => join(folder, name)).find((path) => existsSync(path));

/**
 * Stands in for a suite whose program is not installed, which .ci/run does where it can: one
 * skipped test that says why.
 */
export function withoutProgram(suite: string, name: string): void {
  describe(suite, () => test.skip(`needs ${name}: apt-get install ${name}`, () => undefined));
}
