import { spawn, type ChildProcess } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, open, readFile, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { TurnlogError } from '../../../shared/errors.ts';
import { createKafka, withAdmin } from '../../kafka/client.ts';
import { kafkaJars, KAFKA_VERSION, run } from './jars.ts';
import { scramArguments, secureProperties, type SecureListener } from './secureListener.ts';

const START_LIMIT_MS = 60_000;
const LOOK_MS = 100;
/** A fixed one: a folder that is used again must be formatted under its first id, and a random one may look like an option (`-…`). */
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

/** Below the ports that the system gives to whoever asks for any (from 32768 on Linux): nobody is given one before the broker is up. */
const FREE_PORTS = [20_000, 32_768] as const;

async function hold(port: number): Promise<Server> {
  const server = createServer().listen(port || randomInt(...FREE_PORTS), '127.0.0.1');
  try {
    await once(server, 'listening');
    return server;
  } catch (error) {
    if (port === 0) return hold(0);
    throw new TurnlogError('local_server_failed', `No broker can listen there: ${String(error)}.`, {
      cause: error,
    });
  }
}

/** Ports to listen on, 0 standing for one that is free. Errors: `local_server_failed` when one is taken. */
async function freePorts(wanted: readonly number[]): Promise<number[]> {
  const held: Server[] = [];
  try {
    // All are held until the last one is known: no two can be the same.
    for (const port of wanted) held.push(await hold(port));
    return held.map((server) => (server.address() as AddressInfo).port);
  } finally {
    await Promise.all(held.map((server) => once(server.close(), 'close')));
  }
}

/** Two brokers in one folder write to one metadata log before the second one notices. Errors: `local_server_failed` when one runs there. */
async function requireUnused(config: string): Promise<void> {
  const used = /^listeners=PLAINTEXT:\/\/127\.0\.0\.1:(\d+)/m.exec(
    await readFile(config, 'utf8').catch(() => ''),
  )?.[1];
  if (used !== undefined) await freePorts([Number(used)]);
}

/** One node that is broker and controller, for loopback only, with the internal topics in one small copy. */
const properties = (folder: string, listeners: string[], controllerPort: number): string[] => [
  'process.roles=broker,controller',
  'node.id=1',
  `controller.quorum.voters=1@127.0.0.1:${controllerPort}`,
  `listeners=${[...listeners, `CONTROLLER://127.0.0.1:${controllerPort}`].join(',')}`,
  `advertised.listeners=${listeners.join(',')}`,
  'controller.listener.names=CONTROLLER',
  'listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SECURE:SASL_SSL,CONTROLLER:PLAINTEXT',
  `log.dirs=${join(folder, 'log')}`,
  'offsets.topic.replication.factor=1',
  'offsets.topic.num.partitions=1',
  'transaction.state.log.replication.factor=1',
  'transaction.state.log.min.isr=1',
  'transaction.state.log.num.partitions=1',
  'group.initial.rebalance.delay.ms=0',
  'auto.create.topics.enable=false',
];

interface Options {
  folder: string;
  /** 0, the default, takes a free one. */
  port?: number;
  version?: string;
  secure?: SecureListener;
}

/**
 * A Kafka broker of this machine with its data in `folder`, not started yet.
 * Errors: `local_server_failed` where Java, Maven or Maven Central can't be had, or the port is taken, or a
 * broker runs in the folder.
 */
export async function createLocalBroker({
  folder,
  port = 0,
  version = KAFKA_VERSION,
  secure,
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
    ...properties(folder, listeners, controller),
    ...(secure ? secureProperties(secure) : []),
  ];
  await writeFile(config, `${lines.join('\n')}\n`);
  await run('java', [
    ...java,
    'kafka.tools.StorageTool',
    'format',
    '--ignore-formatted',
    '-t',
    CLUSTER_ID,
    '-c',
    config,
    ...(secure ? scramArguments(secure) : []),
  ]);
  const kafka = createKafka({
    brokers: [brokers],
    clientId: 'local-broker',
    logger: { debug: () => undefined },
  });
  let process: ChildProcess | undefined;

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
      const deadline = performance.now() + START_LIMIT_MS;
      for (;;) {
        const answers = await withAdmin(kafka, (admin) => admin.describeCluster()).then(
          () => true,
          () => false,
        );
        if (answers) return;
        if (process.exitCode !== null || performance.now() > deadline)
          throw new TurnlogError(
            'local_server_failed',
            `The broker does not start; ${folder}/broker.log says why.`,
          );
        await sleep(LOOK_MS);
      }
    },
    kill: () => end('SIGKILL'),
    stop: () => end('SIGTERM'),
  };
}
