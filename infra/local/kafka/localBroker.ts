import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, open, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { retry } from '../../../shared/lib/time/backoff.ts';
import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { createKafka, withAdmin } from '../../kafka/client.ts';
import { kafkaJars, KAFKA_VERSION, run } from './jars.ts';
import { randomInt } from 'node:crypto';
import { createServer, type AddressInfo, type Server } from 'node:net';

interface Node {
  /** The folder with the node's data. */
  folder: string;
  /** The listeners for clients, each as `NAME://host:port`. */
  listeners: readonly string[];
  /** The addresses that clients are given instead, in the same form. */
  advertised?: readonly string[];
  controllerPort: number;
}

/**
 * The configuration of one node that is both broker and controller, on loopback only, with a single
 * small replica of the internal topics.
 */
const serverProperties = ({
  folder,
  listeners,
  advertised = listeners,
  controllerPort,
}: Node): string[] => [
  'process.roles=broker,controller',
  'node.id=1',
  `controller.quorum.voters=1@127.0.0.1:${controllerPort}`,
  `listeners=${[...listeners, `CONTROLLER://127.0.0.1:${controllerPort}`].join(',')}`,
  `advertised.listeners=${advertised.join(',')}`,
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

/** A TLS listener that accepts one user, by SCRAM-SHA-512 or PLAIN. */
interface SecureListener {
  /** PEM file with the private key (PKCS #8) and the certificate. */
  pemFile: string;
  username: string;
  /** Must not contain quotes or commas. */
  password: string;
}

const SCRAM = 'org.apache.kafka.common.security.scram.ScramLoginModule';
const PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule';

/** The lines of server.properties for the listener SECURE. */
const secureProperties = ({ pemFile, username, password }: SecureListener): string[] => [
  'listener.name.secure.ssl.keystore.type=PEM',
  `listener.name.secure.ssl.keystore.location=${pemFile}`,
  'listener.name.secure.sasl.enabled.mechanisms=SCRAM-SHA-512,PLAIN',
  `listener.name.secure.scram-sha-512.sasl.jaas.config=${SCRAM} required;`,
  `listener.name.secure.plain.sasl.jaas.config=${PLAIN} required user_${username}="${password}";`,
];

/** The arguments of `kafka-storage format` that register the user for SCRAM. */
const scramArguments = ({ username, password }: SecureListener): string[] => [
  '--add-scram',
  `SCRAM-SHA-512=[name=${username},password=${password}]`,
];

/**
 * Below the ephemeral ports (from 32768 on Linux), so that the system assigns none of them to
 * another process before the broker is up.
 */
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

/**
 * Resolves with ports to listen on; 0 requests a free one. Throws `local_server_failed` when a port
 * is in use.
 */
async function freePorts(requestedPorts: readonly number[]): Promise<number[]> {
  const servers: Server[] = [];
  try {
    // All ports are held until the last one is known, so that no two are the same.
    for (const port of requestedPorts) servers.push(await hold(port));
    return servers.map((server) => (server.address() as AddressInfo).port);
  } finally {
    await Promise.all(servers.map((server) => once(server.close(), 'close')));
  }
}

const START_LIMIT_MS = 60_000;
const LOOKS = { firstMs: 100, longestMs: 100 };
/**
 * Fixed, because an existing folder must be formatted with its first id, and a random id may look
 * like an option (`-…`).
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
  /** The same for the secure listener; empty without one. */
  secureBrokers: string;
  version: string;
  /** Starts the broker. Resolves when it answers. */
  start(): Promise<void>;
  /** Kills the broker without warning, like a power failure. */
  kill(): Promise<void>;
  /** Shuts the broker down gracefully. */
  stop(): Promise<void>;
}

/**
 * Throws `local_server_failed` when a broker runs in the folder: two brokers would write to one
 * metadata log before the second one notices.
 */
async function requireUnused(config: string): Promise<void> {
  const usedPort = /^listeners=PLAINTEXT:\/\/127\.0\.0\.1:(\d+)/m.exec(
    await readFile(config, 'utf8').catch(() => ''),
  )?.[1];
  if (usedPort !== undefined) await freePorts([Number(usedPort)]);
}

interface Options {
  folder: string;
  /** 0, the default, selects a free port. */
  port?: number;
  version?: string;
  secure?: SecureListener;
  /** Further lines of server.properties, which override ours. */
  properties?: readonly string[];
  /** The `host:port` that clients are given, such as a proxy's. Not with `secure`. */
  advertised?: string;
}

/**
 * Creates a Kafka broker on this machine with its data in `folder`, and does not start it. Throws
 * `local_server_failed` if Java, Maven or Maven Central is not available, the port is in use, or a
 * broker runs in the folder.
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
  const [listenerPort = 0, controllerPort = 0, securePort = 0] = await freePorts([port, 0, 0]);
  const java = [...HEAP, '-cp', `${jars}/*`];
  await mkdir(folder, { recursive: true });
  const brokers = `127.0.0.1:${listenerPort}`;
  const secureBrokers = secure ? `127.0.0.1:${securePort}` : '';
  const listeners = [`PLAINTEXT://${brokers}`, ...(secure ? [`SECURE://${secureBrokers}`] : [])];
  const lines = [
    ...serverProperties({
      folder,
      listeners,
      ...(advertised !== undefined && { advertised: [`PLAINTEXT://${advertised}`] }),
      controllerPort,
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

  /** Throws `local_server_failed` when the process ends, or does not answer in time. */
  async function waitUntilAnswering(starting: ChildProcess): Promise<void> {
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
      await waitUntilAnswering(process);
    },
    kill: () => end('SIGKILL'),
    stop: () => end('SIGTERM'),
  };
}
