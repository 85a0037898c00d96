import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { run } from '../../../../infra/local/kafka/jars.ts';
import { root } from '../../docs/projectFiles.ts';
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

/** The folder of `fsck` and `litewitness`; fetched and built where they are not there yet. */
export const goTools = (): Promise<string> =>
  installed(`${MODULE}/go.sum`, 'go', (folder) =>
    run(
      'go',
      ['-C', join(root, MODULE), 'build', '-mod=readonly', '-o', `${folder}/`, 'tool'],
      BUILD_LIMIT_MS,
    ),
  );
