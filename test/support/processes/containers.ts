import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

const SOCKETS = [
  '/var/run/docker.sock',
  join(homedir(), '.docker/run/docker.sock'),
  join(homedir(), '.docker/desktop/docker.sock'),
  join(process.env['XDG_RUNTIME_DIR'] ?? `/run/user/${process.getuid?.()}`, 'docker.sock'),
  join(homedir(), '.testcontainers.properties'),
];

/**
 * The library that starts containers. Loading it takes a while, so it is loaded only where an
 * engine may be; throws elsewhere.
 */
export async function containers(): Promise<typeof import('testcontainers')> {
  const possible =
    process.platform === 'win32' ||
    process.env['DOCKER_HOST'] !== undefined ||
    SOCKETS.some((file) => existsSync(file));
  if (!possible) throw new Error('there is no container engine');
  return import('testcontainers');
}
