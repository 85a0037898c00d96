import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { retry } from '../../../shared/lib/time/backoff.ts';
import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';

/** The version to run. 4.3 loses transactions when it is killed (infra/kafka/README.md). */
export const KAFKA_VERSION = process.env['KAFKA_VERSION'] ?? '4.1.2';

const POM = fileURLToPath(new URL('pom.xml', import.meta.url));
const CACHE = fileURLToPath(new URL('../../../node_modules/.cache/turnlog/', import.meta.url));
const OUTPUT_SHOWN = 2_000;
const FETCHES = 3;
/**
 * Maven waits half an hour for an unresponsive server. The next attempt reuses the files it has
 * fetched.
 */
const FETCH_LIMIT_MS = 300_000;
const PAUSES = { firstMs: 2_000, longestMs: 2_000 };

/**
 * Runs a program to its end, for at most `timeout` milliseconds. Resolves with its output. Throws
 * `local_server_failed` when the program can't be run or fails.
 */
export function run(command: string, args: readonly string[], timeout?: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], timeout });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
    const fail = (why: string): void =>
      reject(
        new TurnlogError(
          'local_server_failed',
          `${command} ${why}: ${output.slice(-OUTPUT_SHOWN)}`,
        ),
      );
    child.once('error', (error) => fail(error.message));
    child.once('close', (code) => (code === 0 ? resolve(output) : fail(`ended with code ${code}`)));
  });
}

function fetchArguments(version: string, folder: string): string[] {
  // -U, because Maven remembers failed lookups for a day.
  const options = ['-B', '-q', '-U', '-f', POM, `-Dkafka.version=${version}`];
  const goal = ['dependency:copy-dependencies', '-DincludeScope=runtime'];
  return [...options, ...goal, `-DoutputDirectory=${folder}`];
}

/**
 * Fetches the jars into a temporary folder, which is renamed when complete. An existing folder is
 * therefore complete.
 */
async function fetchJars(version: string, folder: string): Promise<void> {
  const partial = `${folder}.${process.pid}`;
  await mkdir(partial, { recursive: true });
  try {
    await run('mvn', fetchArguments(version, partial), FETCH_LIMIT_MS);
    await rename(partial, folder).catch((error: unknown) => {
      // Another process that fetched at the same time may have been first.
      if (!existsSync(folder)) throw error;
    });
  } finally {
    await rm(partial, { recursive: true, force: true });
  }
}

/**
 * Resolves with the folder of a Kafka broker's jars. The first time, `mvn` fetches them from Maven
 * Central into node_modules/.cache. A failed fetch is retried: the network may have failed, or
 * another process may have written to Maven's own cache at the same time. Throws
 * `local_server_failed` without Java, Maven or access to Maven Central.
 */
export async function kafkaJars(version = KAFKA_VERSION): Promise<string> {
  await run('java', ['-version']);
  const folder = `${CACHE}kafka-${version}`;
  if (existsSync(folder)) return folder;
  await run('mvn', ['-version']);
  const fetchOnce = async (): Promise<void> => {
    // Another process may have fetched them meanwhile.
    if (!existsSync(folder)) await fetchJars(version, folder);
  };
  await retry(fetchOnce, { pauses: PAUSES, shouldRetry: (_error, failures) => failures < FETCHES });
  return folder;
}
