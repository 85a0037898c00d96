import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, open, readFile, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { TurnlogError } from '../../../shared/errors.ts';
import { createKafka, withAdmin } from '../client.ts';
import { kafkaJars, KAFKA_VERSION, run } from './jars.ts';

const START_LIMIT_MS = 60_000;
const LOOK_MS = 100;
/** A fixed one: a folder that is used again must be formatted under its first id, and a random one may look like an option (`-…`). */
const CLUSTER_ID = 'TurnlogLocalBroker0001';
const HEAP = ['-Xms128m', '-Xmx512m', '-XX:+UseSerialGC', '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn'];

export interface LocalBroker {
  /** `host:port`, for KAFKA_BROKERS. The same after every start. */
  brokers: string;
  version: string;
  /** Starts it; resolves when it answers. */
  start(): Promise<void>;
  /** Ends it without any warning, as a power cut would. */
  kill(): Promise<void>;
  /** Ends it in order. */
  stop(): Promise<void>;
}

/** Ports to listen on, 0 standing for one that is free. Errors: `invalid_request` when one is taken. */
async function freePorts(wanted: readonly number[]): Promise<number[]> {
  const servers = wanted.map((port) => createServer().listen(port, '127.0.0.1'));
  // All are held until the last one is known: no two can be the same.
  const outcomes = await Promise.allSettled(servers.map((server) => once(server, 'listening')));
  const ports = servers.map((server) => (server.address() as AddressInfo | null)?.port ?? 0);
  await Promise.all(servers.filter((server) => server.listening).map((server) => once(server.close(), 'close')));
  const refused = outcomes.find((outcome) => outcome.status === 'rejected');
  if (refused) throw new TurnlogError('invalid_request', `No broker can listen there: ${String(refused.reason)}.`, { cause: refused.reason });
  return ports;
}

/** Two brokers in one folder write to one metadata log before the second one notices. Errors: `invalid_request` when one runs there. */
async function requireUnused(config: string): Promise<void> {
  const used = /^listeners=PLAINTEXT:\/\/127\.0\.0\.1:(\d+)/m.exec(await readFile(config, 'utf8').catch(() => ''))?.[1];
  if (used !== undefined) await freePorts([Number(used)]);
}

/** One node that is broker and controller, for loopback only, with the internal topics in one small copy. */
const properties = (folder: string, port: number, controllerPort: number): string =>
  [
    'process.roles=broker,controller',
    'node.id=1',
    `controller.quorum.voters=1@127.0.0.1:${controllerPort}`,
    `listeners=PLAINTEXT://127.0.0.1:${port},CONTROLLER://127.0.0.1:${controllerPort}`,
    `advertised.listeners=PLAINTEXT://127.0.0.1:${port}`,
    'controller.listener.names=CONTROLLER',
    'listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT',
    `log.dirs=${join(folder, 'log')}`,
    'offsets.topic.replication.factor=1',
    'offsets.topic.num.partitions=1',
    'transaction.state.log.replication.factor=1',
    'transaction.state.log.min.isr=1',
    'transaction.state.log.num.partitions=1',
    'group.initial.rebalance.delay.ms=0',
    'auto.create.topics.enable=false',
    '',
  ].join('\n');

/**
 * A Kafka broker of this machine with its data in `folder`, not started yet. `port` 0 takes a free one.
 * Errors: `invalid_request` where Java, Maven or Maven Central can't be had, or the port is taken, or a
 * broker runs in the folder.
 */
export async function createLocalBroker({ folder, port = 0, version = KAFKA_VERSION }: { folder: string; port?: number; version?: string }): Promise<LocalBroker> {
  const jars = await kafkaJars(version);
  const config = join(folder, 'server.properties');
  await requireUnused(config);
  const [listening = 0, controller = 0] = await freePorts([port, 0]);
  const java = [...HEAP, '-cp', `${jars}/*`];
  await mkdir(folder, { recursive: true });
  await writeFile(config, properties(folder, listening, controller));
  await run('java', [...java, 'kafka.tools.StorageTool', 'format', '--ignore-formatted', '-t', CLUSTER_ID, '-c', config]);
  const brokers = `127.0.0.1:${listening}`;
  const kafka = createKafka({ brokers: [brokers], clientId: 'local-broker', logger: { debug: () => undefined } });
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
    version,
    async start() {
      const output = await open(join(folder, 'broker.log'), 'a');
      process = spawn('java', [...java, 'kafka.Kafka', config], { stdio: ['ignore', output.fd, output.fd] });
      await output.close();
      const deadline = performance.now() + START_LIMIT_MS;
      for (;;) {
        const answers = await withAdmin(kafka, (admin) => admin.describeCluster()).then(() => true, () => false);
        if (answers) return;
        if (process.exitCode !== null || performance.now() > deadline) throw new TurnlogError('invalid_request', `The broker does not start; ${folder}/broker.log says why.`);
        await sleep(LOOK_MS);
      }
    },
    kill: () => end('SIGKILL'),
    stop: () => end('SIGTERM'),
  };
}
