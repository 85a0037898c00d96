import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { eventually } from './operator.ts';
import { debianProgram } from './debianProgram.ts';
import { freePort } from './freePort.ts';

export const HAPROXY = debianProgram('haproxy');

interface LoadBalancer {
  url: string;
  /** Resolves once the replica on this port is sent requests, or none any more. */
  until(port: number, state: 'UP' | 'DOWN'): Promise<void>;
  close(): Promise<void>;
}

/**
 * The load balancer of infra/deploy/haproxy.cfg, with nothing changed but addresses: its own, and
 * those of the replicas, which it finds by ports here and not by Docker's DNS.
 */
async function configuration(file: string, port: number, ports: readonly number[]) {
  const shipped = await readFile(
    new URL('../../../infra/deploy/haproxy.cfg', import.meta.url),
    'utf8',
  );
  const servers = ports.map((own) => `  server api-${own} 127.0.0.1:${own}`).join('\n');
  const changes: [RegExp | string, string][] = [
    ['log stdout format raw local0 notice', `stats socket ${file}.sock mode 600`],
    [/resolvers docker\n(?: .*\n)+/, ''],
    [/ resolvers docker init-addr none/g, ''],
    ['bind :3000', `bind 127.0.0.1:${port}`],
    [/ {2}server-template api 10 api:3000/g, servers],
  ];
  return changes.reduce((config, [from, to]) => {
    const changed = config.replace(from, to);
    if (changed === config) throw new Error(`haproxy.cfg has no ${String(from)}`);
    return changed;
  }, shipped);
}

/** Starts a real HAProxy in front of the replicas on these ports of this machine. */
export async function startHaproxy(ports: readonly number[]): Promise<LoadBalancer> {
  const folder = await mkdtemp(join(tmpdir(), 'turnlog-haproxy-'));
  const file = join(folder, 'haproxy.cfg');
  const port = await freePort();
  await writeFile(file, await configuration(file, port, ports));
  const child = spawn(HAPROXY!, ['-db', '-f', file], { stdio: ['ignore', 'ignore', 'pipe'] });
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (said: string) => (errors += said));
  const exited = once(child, 'exit');

  async function states(): Promise<string> {
    if (child.exitCode !== null) throw new Error(`HAProxy has ended: ${errors}`);
    const socket = connect(`${file}.sock`);
    socket.on('error', () => undefined);
    socket.end('show stat\n');
    return text(socket).catch(() => '');
  }

  return {
    url: `http://127.0.0.1:${port}`,
    async until(own, state) {
      const line = new RegExp(`^ready,api-${own},.*,${state}[, ]`, 'm');
      await eventually(states, (found) => line.test(found));
    },
    async close() {
      child.kill('SIGTERM');
      await exited;
      await rm(folder, { recursive: true });
    },
  };
}
