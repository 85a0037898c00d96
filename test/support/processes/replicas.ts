import { setTimeout as sleep } from 'node:timers/promises';
import { startServerProcess, type ServerProcess } from './serverProcess.ts';
import { eventually } from './operator.ts';
import { apiClient, TEST_KEY, type Client, type Reply } from '../http/service.ts';

type Role = 'api' | 'projector';

interface Member {
  role: Role;
  process: ServerProcess;
  /** Undefined while it is dead or starting. */
  url: string | undefined;
  /** Counts its lives, so that a start that was overtaken by a kill is told from the next one. */
  life: number;
}

/** Processes that share their stores, and are killed and started again. */
export function startReplicas(env: Record<string, string>, roles: readonly Role[]) {
  const failures: unknown[] = [];

  async function begin(member: Member): Promise<void> {
    const life = (member.life += 1);
    try {
      const url = await member.process.ready;
      if (member.life === life) member.url = url;
    } catch (error) {
      if (member.life === life) failures.push(error);
    }
  }

  const start = (role: Role): ServerProcess => startServerProcess(env, ['--services', role]);
  const members = roles.map((role): Member => ({
    role,
    process: start(role),
    url: undefined,
    life: 0,
  }));
  for (const member of members) void begin(member);
  const apis = members.filter(({ role }) => role === 'api');

  return {
    /** Starts that failed. */
    failures,
    /** Resolves once every process has said that it is ready. */
    ready: () => Promise.all(members.map(({ process }) => process.ready)),
    /** The addresses of the API replicas that are up. */
    urls: (): string[] => apis.flatMap(({ url }) => url ?? []),
    /** A client of every API replica that is up. */
    clients: (): Client[] =>
      apis.flatMap(({ url }) => (url === undefined ? [] : [apiClient(url, TEST_KEY)])),
    /** Clients of the API replicas once all of them listen, whether or not they are up. */
    async listening(): Promise<Client[]> {
      const listens = /"url":"(http[^"]+)","msg":"listening/;
      const urls = await eventually(
        async () => apis.map(({ process }) => listens.exec(process.errors())?.[1]),
        (known) => known.every((url) => url !== undefined),
      );
      return urls.map((url) => apiClient(url!, TEST_KEY));
    },
    /** Kills any of them, and starts another in its place after a while. Resolves with its role. */
    async killAny(pauseMs: number): Promise<Role> {
      const member = members[Math.floor(Math.random() * members.length)]!;
      member.life += 1;
      member.url = undefined;
      member.process.kill('SIGKILL');
      await member.process.exited;
      await sleep(pauseMs);
      member.process = start(member.role);
      void begin(member);
      return member.role;
    },
    async stop(): Promise<(number | null)[]> {
      for (const { process } of members) process.kill('SIGTERM');
      return Promise.all(members.map(({ process }) => process.exited));
    },
  };
}

/** An answer, or undefined where the replica died over it. */
export const unlessCut = (call: Promise<Reply>): Promise<Reply | undefined> =>
  call.catch(() => undefined);
