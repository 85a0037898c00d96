import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { retry } from '../../../shared/lib/time/backoff.ts';
import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';

/** The version that is run; 4.3 loses transactions when it is killed (infra/kafka/README.md). */
export const KAFKA_VERSION = process.env['KAFKA_VERSION'] ?? '4.1.2';

const POM = fileURLToPath(new URL('pom.xml', import.meta.url));
const CACHE = fileURLToPath(new URL('../../../node_modules/.cache/turnlog/', import.meta.url));
const OUTPUT_SHOWN = 2_000;
const FETCHES = 3;
/**
 * Maven waits half an hour for a server that has fallen silent; what it has is kept for the next
 * time.
 */
const FETCH_LIMIT_MS = 300_000;
const PAUSES = { firstMs: 2_000, longestMs: 2_000 };

/**
 * Runs a program to its end, or for at most so many milliseconds. Resolves with what it wrote.
 * Errors: `local_server_failed` when it can't be run or fails.
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
  // -U, because Maven remembers for a day what it could not find.
  const options = ['-B', '-q', '-U', '-f', POM, `-Dkafka.version=${version}`];
  const goal = ['dependency:copy-dependencies', '-DincludeScope=runtime'];
  return [...options, ...goal, `-DoutputDirectory=${folder}`];
}

/** Fetches the jars into a folder; renamed when complete, so a folder that exists is whole. */
async function fetchJars(version: string, folder: string): Promise<void> {
  const partial = `${folder}.${process.pid}`;
  await mkdir(partial, { recursive: true });
  try {
    await run('mvn', fetchArguments(version, partial), FETCH_LIMIT_MS);
    await rename(partial, folder).catch((error: unknown) => {
      // Another process, which has fetched at the same time, may have been first.
      if (!existsSync(folder)) throw error;
    });
  } finally {
    await rm(partial, { recursive: true, force: true });
  }
}

/**
 * The folder with the jars of a Kafka broker, fetched from Maven Central by `mvn` the first time,
 * into node_modules/.cache. A fetch that fails is repeated: the network may have, or another
 * process that writes to Maven's own cache at the same time.
 * Errors: `local_server_failed` where there is no Java, no Maven or no way to Maven Central.
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
