import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { chmod, readdir, rm, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, expect, test } from '@jest/globals';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const programs = await temporaryFolder();
const version = `test-${randomUUID()}`;
let fetched = '';
afterAll(async () => {
  await rm(programs, { recursive: true });
  if (fetched) await rm(fetched, { recursive: true });
});

async function program(name: string, script: string): Promise<void> {
  const file = join(programs, name);
  await writeFile(file, `#!/bin/sh\n${script}\n`);
  await chmod(file, 0o755);
}

test('jars that could not be fetched are fetched again, by several processes at once as well', async () => {
  await program('java', 'exit 0');
  // Each process's first fetch fails; a later one brings a file.
  await program(
    'mvn',
    `
    for argument in "$@"; do case "$argument" in -DoutputDirectory=*) folder="\${argument#-DoutputDirectory=}";; -version) exit 0;; esac; done
    attempted="${programs}/$PPID"
    if [ ! -e "$attempted" ]; then : > "$attempted"; echo 'Connection reset' >&2; exit 1; fi
    sleep 1
    : > "$folder/kafka.jar"`,
  );
  const fetchJars = () =>
    promisify(execFile)(
      process.execPath,
      [
        '--input-type=module',
        '--eval',
        `import { kafkaJars } from './infra/local/kafka/jars.ts'; process.stdout.write(await kafkaJars('${version}'));`,
      ],
      {
        cwd: root,
        env: {
          ...process.env,
          NODE_OPTIONS: '',
          PATH: `${programs}${delimiter}${process.env['PATH'] ?? ''}`,
        },
      },
    );
  const folders = (await Promise.all([fetchJars(), fetchJars(), fetchJars()])).map(
    ({ stdout }) => stdout,
  );
  [fetched = ''] = folders;
  expect(new Set(folders)).toEqual(new Set([expect.stringMatching(`/kafka-${version}$`)]));
  expect(await readdir(fetched)).toEqual(['kafka.jar']);
  expect(
    (await readdir(join(fetched, '..'))).filter((name) => name.startsWith(`kafka-${version}`)),
  ).toHaveLength(1);
}, 60_000);
