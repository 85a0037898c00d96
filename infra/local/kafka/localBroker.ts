import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, open, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { retry } from '../../../shared/lib/time/backoff.ts';
import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { createKafka, withAdmin } from '../../kafka/client.ts';
import { kafkaJars, KAFKA_VERSION, run } from './jars.ts';
import { freePorts } from './ports.ts';
import { scramArguments, secureProperties, type SecureListener } from './secureListener.ts';
import { serverProperties } from './serverProperties.ts';

const START_LIMIT_MS = 60_000;
const LOOKS = { firstMs: 100, longestMs: 100 };
/**
 * A fixed one: a folder that is used again must be formatted under its first id, and a random one
 * may look like an option (`-…`).
 */
const CLUSTER_ID = 'TurnlogLocalBroker0001';
const HEAP = [
  '-Xms128m',
  '-Xmx512m',
  '-XX:+UseSerialGC',
  '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn',
];

export interface LocalBroker {
  /** `host:port`, for KAFKA_BROKERS. The same after every start. */
  brokers: string;
  /** The same of the secure listener; empty without one. */
  secureBrokers: string;
  version: string;
  /** Starts it; resolves when it answers. */
  start(): Promise<void>;
  /** Ends it without any warning, as a power cut would. */
  kill(): Promise<void>;
  /** Ends it in order. */
  stop(): Promise<void>;
}

/**
 * Two brokers in one folder write to one metadata log before the second one notices.
 * Errors: `local_server_failed` when one runs there.
 */
async function requireUnused(config: string): Promise<void> {
  const used = /^listeners=PLAINTEXT:\/\/127\.0\.0\.1:(\d+)/m.exec(
    await readFile(config, 'utf8').catch(() => ''),
  )?.[1];
  if (used !== undefined) await freePorts([Number(used)]);
}

interface Options {
  folder: string;
  /** 0, the default, takes a free one. */
  port?: number;
  version?: string;
  secure?: SecureListener;
  /** More lines of server.properties; they win over ours. */
  properties?: readonly string[];
  /** `host:port` that clients are told to go to, such as a proxy's; not with `secure`. */
  advertised?: string;
}

/**
 * A Kafka broker of this machine with its data in `folder`, not started yet.
 * Errors: `local_server_failed` where Java, Maven or Maven Central can't be had, or the port is
 * taken, or a broker runs in the folder.
 */
export async function createLocalBroker({
  folder,
  port = 0,
  version = KAFKA_VERSION,
  secure,
  advertised,
  properties = [],
}: Options): Promise<LocalBroker> {
  const jars = await kafkaJars(version);
  const config = join(folder, 'server.properties');
  await requireUnused(config);
  const [listening = 0, controller = 0, securely = 0] = await freePorts([port, 0, 0]);
  const java = [...HEAP, '-cp', `${jars}/*`];
  await mkdir(folder, { recursive: true });
  const brokers = `127.0.0.1:${listening}`;
  const secureBrokers = secure ? `127.0.0.1:${securely}` : '';
  const listeners = [`PLAINTEXT://${brokers}`, ...(secure ? [`SECURE://${secureBrokers}`] : [])];
  const lines = [
    ...serverProperties({
      folder,
      listeners,
      ...(advertised !== undefined && { advertised: [`PLAINTEXT://${advertised}`] }),
      controllerPort: controller,
    }),
    ...(secure ? secureProperties(secure) : []),
    ...properties,
  ];
  await writeFile(config, `${lines.join('\n')}\n`);
  const format = ['kafka.tools.StorageTool', 'format', '--ignore-formatted'];
  const user = secure ? scramArguments(secure) : [];
  await run('java', [...java, ...format, '-t', CLUSTER_ID, '-c', config, ...user]);
  const kafka = createKafka({
    brokers: [brokers],
    clientId: 'local-broker',
    logger: { debug: () => undefined },
  });
  let process: ChildProcess | undefined;

  /** Errors: `local_server_failed` when the process ends, or takes too long. */
  async function untilAnswering(starting: ChildProcess): Promise<void> {
    const deadline = performance.now() + START_LIMIT_MS;
    await retry(() => withAdmin(kafka, (admin) => admin.describeCluster()), {
      pauses: LOOKS,
      shouldRetry: () => starting.exitCode === null && performance.now() <= deadline,
    }).catch((cause: unknown) => {
      const message = `The broker does not start; ${folder}/broker.log says why.`;
      throw new TurnlogError('local_server_failed', message, { cause });
    });
  }

  async function end(signal: NodeJS.Signals): Promise<void> {
    const ending = process;
    process = undefined;
    if (!ending || ending.exitCode !== null || ending.signalCode !== null) return;
    const exited = once(ending, 'exit');
    ending.kill(signal);
    await exited;
  }

  return {
    brokers,
    secureBrokers,
    version,
    async start() {
      const output = await open(join(folder, 'broker.log'), 'a');
      process = spawn('java', [...java, 'kafka.Kafka', config], {
        stdio: ['ignore', output.fd, output.fd],
      });
      await output.close();
      await untilAnswering(process);
    },
    kill: () => end('SIGKILL'),
    stop: () => end('SIGTERM'),
  };
}
