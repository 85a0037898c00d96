import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { TurnlogError } from '../../../shared/errors.ts';

/** The version that is run; 4.3 loses transactions when it is killed (infra/kafka/README.md). */
export const KAFKA_VERSION = process.env['KAFKA_VERSION'] ?? '4.1.2';

const POM = fileURLToPath(new URL('pom.xml', import.meta.url));
const CACHE = fileURLToPath(new URL('../../../node_modules/.cache/turnlog/', import.meta.url));
const OUTPUT_SHOWN = 2_000;

/** Runs a program to its end. Resolves with what it wrote. Errors: `invalid_request` when it can't be run or fails. */
export function run(command: string, args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
    const fail = (why: string): void => reject(new TurnlogError('invalid_request', `${command} ${why}: ${output.slice(-OUTPUT_SHOWN)}`));
    child.once('error', (error) => fail(error.message));
    child.once('close', (code) => (code === 0 ? resolve(output) : fail(`ended with code ${code}`)));
  });
}

/**
 * The folder with the jars of a Kafka broker, fetched from Maven Central by `mvn` the first time, into node_modules/.cache.
 * Errors: `invalid_request` where there is no Java, no Maven or no way to Maven Central.
 */
export async function kafkaJars(version = KAFKA_VERSION): Promise<string> {
  await run('java', ['-version']);
  const folder = `${CACHE}kafka-${version}`;
  if (existsSync(folder)) return folder;
  // Renamed when complete: a folder that exists is whole, also when two fetch at once.
  const partial = `${folder}.${process.pid}`;
  await mkdir(partial, { recursive: true });
  try {
    await run('mvn', ['-B', '-q', '-f', POM, `-Dkafka.version=${version}`, 'dependency:copy-dependencies', '-DincludeScope=runtime', `-DoutputDirectory=${partial}`]);
    if (!existsSync(folder)) await rename(partial, folder);
  } finally {
    await rm(partial, { recursive: true, force: true });
  }
  return folder;
}
