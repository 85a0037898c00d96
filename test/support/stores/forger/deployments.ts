/** Deployments whose whole storage can be put back to an earlier state, or lose its tree. */
import { cp, rm } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { afterAll } from '@jest/globals';
import { temporaryFolder } from '../sqlite/sqliteEventStore.ts';
import { apiClient, TEST_KEY, type Client, type Reply } from '../../http/service.ts';
import { eventually } from '../../processes/operator.ts';
import { startCliWith, type CliResult } from '../../processes/cliProcess.ts';
import { startServerProcess, type ServerProcess } from '../../processes/serverProcess.ts';
import { forgedStores, type ForgedStores } from './forgedService.ts';
import { treeForger, type TreeForger } from './treeForger.ts';

/** The storage of a service: its log, its read models, and its tree. */
interface Storage extends Pick<ForgedStores, 'env' | 'forger' | 'close'>, TreeForger {
  /** Copies all of it under a name, in place of an earlier copy, while no service runs. */
  save(name: string): Promise<void>;
  /** Puts a copy back, while no service runs: all of it, or not the log. */
  putBack(name: string, part?: 'without its log'): Promise<void>;
}

/** One service as a real process, which is started and stopped over its storage. */
export interface Deployment extends Omit<Storage, 'close'> {
  /**
   * Starts the service, or some of its services, and resolves once it answers. It may wait, and not
   * be ready.
   */
  start(env?: Record<string, string>, ...services: string[]): Promise<RunningDeployment>;
  cli(...args: string[]): Promise<CliResult>;
  /** The same with further options. */
  cliWith(env: Record<string, string>, ...args: string[]): Promise<CliResult>;
  /** Kills what runs of it. */
  killAll(): Promise<void>;
  close(): Promise<void>;
}

export interface RunningDeployment extends Client {
  /** The answer of `/health/ready`. */
  health(): Promise<Reply>;
  /** Resolves with the answer of health once the start waits for this, a beginning of a sentence. */
  waiting(why: string): Promise<Reply>;
  /** Resolves once it is ready. */
  ready(): Promise<void>;
  /** Creates an agent, which is an event, and resolves once a checkpoint covers it. */
  write(): Promise<void>;
  /** What it has logged. */
  logged(): string;
  stop(): Promise<void>;
}

/** How many leaves a checkpoint has; 0 for none. */
export const sizeOf = (checkpoint: string | undefined): number =>
  Number(checkpoint?.split('\n')[1] ?? 0);

const LISTENING = /"url":"(http:[^"]+)","msg":"listening/;

async function openStorage(stores: ForgedStores): Promise<Storage> {
  const { env, folder, database, whileStopped } = stores;
  const copies = await temporaryFolder();
  return {
    ...stores,
    ...treeForger(env),
    save: (name) =>
      whileStopped(async () => {
        await rm(join(copies, name), { recursive: true, force: true });
        await cp(folder, join(copies, name), { recursive: true });
        await database?.save(name);
      }),
    putBack: (name, part) =>
      whileStopped(async () => {
        const trees = relative(folder, join(env.DATA_DIR, 'tlog'));
        const replaced = part === undefined ? '' : trees;
        if (part === undefined || !database) {
          await rm(join(folder, replaced), { recursive: true });
          await cp(join(copies, name, replaced), join(folder, replaced), { recursive: true });
        }
        await database?.putBack(name);
      }),
    async close() {
      await stores.close();
      await rm(copies, { recursive: true });
    },
  };
}

/** The address that a process listens at, though its start may wait. */
async function addressOf(process: ServerProcess): Promise<string> {
  let hasEnded = false;
  void process.exited.then(() => (hasEnded = true));
  const url = await eventually(
    async () => LISTENING.exec(process.errors())?.[1],
    (found) => found !== undefined || hasEnded,
  );
  if (url === undefined) throw new Error(`the server ended: ${process.errors()}`);
  return url;
}

async function deploymentOver(storage: Storage): Promise<Deployment> {
  const running = new Set<ServerProcess>();
  const cliWith: Deployment['cliWith'] = (env, ...args) =>
    startCliWith({ ...storage.env, ...env }, ...args).ended;
  async function killAll(): Promise<void> {
    for (const process of running) process.kill('SIGKILL');
    await Promise.all([...running].map(({ exited }) => exited));
    running.clear();
  }
  return {
    ...storage,
    cliWith,
    cli: (...args) => cliWith({}, ...args),
    async start(env = {}, ...services) {
      const options = { BOOTSTRAP_API_KEY: TEST_KEY, LOG_LEVEL: 'info', ...env };
      const args = services.length > 0 ? ['--services', services.join()] : [];
      const process = startServerProcess({ ...storage.env, ...options }, args);
      running.add(process);
      const client = apiClient(await addressOf(process), TEST_KEY);
      const health = () => client.get('/health/ready');
      return {
        ...client,
        health,
        waiting: (why) =>
          eventually(health, ({ body }) => body.error?.includes(`waits. ${why}`) === true),
        ready: async () => void (await eventually(health, ({ status }) => status === 200)),
        async write() {
          const agent = { name: 'a', instruction: 'i', model: 'offline-echo' };
          const { status } = await client.post('/v1/agents', agent);
          if (status !== 200) throw new Error(`the agent was answered with ${status}`);
          const events = storage.forger.events().length;
          // The service may append an event meanwhile.
          await eventually(storage.checkpoint, (note) => sizeOf(note) >= events);
        },
        logged: process.errors,
        async stop() {
          process.kill('SIGTERM');
          await process.exited;
          running.delete(process);
        },
      };
    },
    killAll,
    async close() {
      await killAll();
      await storage.close();
    },
  };
}

interface DeploymentKind {
  name: string;
  open(): Promise<Deployment>;
  /**
   * Opens a deployment that has written two events, signed each, and stopped: a forger may change the
   * first, because the read models know the hash of the last one. It is made once for the test file,
   * and put back for each test, so that each has the same log, tree and keys.
   */
  openSigned(): Promise<Deployment>;
}

const SIGNED = 'signed';

async function signTwice(deployment: Deployment): Promise<void> {
  const service = await deployment.start();
  await service.ready();
  await service.write();
  await service.write();
  await service.stop();
}

async function openDeployment(open: () => Promise<ForgedStores>): Promise<Deployment> {
  return deploymentOver(await openStorage(await open()));
}

/** The deployments on which every attack is tried: the first one is embedded, the last one distributed. */
export async function deployments(): Promise<readonly DeploymentKind[]> {
  const signed = new Map<string, Deployment>();
  // Before the hook that stops the database server: hooks of this kind run in order of declaration.
  afterAll(async () => {
    for (const deployment of signed.values()) await deployment.close();
  });
  return (await forgedStores()).map(({ name, open }) => ({
    name,
    open: () => openDeployment(open),
    async openSigned() {
      let deployment = signed.get(name);
      if (deployment) await deployment.putBack(SIGNED);
      else {
        deployment = await openDeployment(open);
        signed.set(name, deployment);
        await signTwice(deployment);
        await deployment.save(SIGNED);
      }
      return { ...deployment, close: deployment.killAll };
    },
  }));
}
