import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, test } from '@jest/globals';
import { run } from '../../../../infra/local/kafka/jars.ts';
import { root } from '../../docs/projectFiles.ts';
import { debianProgram, withoutProgram } from '../debianProgram.ts';
import { installed } from '../recipes/installed.ts';

const MODULE = 'test/support/processes/go';
/** The one that go.mod names: an older one can't build them. */
const LEAST_MINOR = 24;
/** Some forty seconds of work, on a machine that may do much else. */
const BUILD_LIMIT_MS = 900_000;

/** Whether there is a Go that can build the tools. */
export function hasGo(): boolean {
  const { stdout } = spawnSync('go', ['env', 'GOVERSION'], { encoding: 'utf8' });
  const [, minor] = /^go1\.(\d+)/.exec(stdout ?? '') ?? [];
  return Number(minor ?? 0) >= LEAST_MINOR;
}

/** Stands in for a suite that needs Go. The package of an old Debian is too old for it. */
export function withoutGo(suite: string): void {
  if (debianProgram('go') === undefined) withoutProgram(suite, 'golang-go');
  else describe(suite, () => test.skip(`needs Go 1.${LEAST_MINOR}`, () => undefined));
}

/** The folder of `fsck` and `litewitness`; fetched and built where they are not there yet. */
export const goTools = (): Promise<string> =>
  installed(`${MODULE}/go.sum`, 'go', (folder) =>
    run(
      'go',
      ['-C', join(root, MODULE), 'build', '-mod=readonly', '-o', `${folder}/`, 'tool'],
      BUILD_LIMIT_MS,
    ),
  );
