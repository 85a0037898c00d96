import type { PostgresReadModels } from '../../../infra/postgres/readModels/readModels.ts';
import { createSharedRateLimiter } from '../../../infra/ratelimit/shared.ts';
import type { Broadcast } from '../../../shared/ports/broadcast.ts';
import type { Instances } from '../../../shared/ports/instances.ts';
import type { Config } from '../../../shared/lib/config/config.ts';
import { isTurnlogError, TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import type { Logger } from '../../../shared/lib/logger.ts';
import type { RateLimiter } from '../../../shared/ports/rateLimiter.ts';
import type { ActiveProjectionStore, RebuildStore } from '../../../shared/ports/readModels.ts';
import type { ProjectorLogger } from '../../followers/projector/projection.ts';
import { retryUntilStoreAvailable } from '../../process/startup/retryUntilStoreAvailable.ts';
import type { ProcessPart } from '../../process/processParts.ts';

export type { PostgresReadModels };

/**
 * The client of PostgreSQL is loaded only where a database is configured. Opens without waiting for
 * the server.
 */
export async function openReplicaReadModels(
  databaseUrl: string,
  poolSize: number,
): Promise<PostgresReadModels> {
  const { openPostgresReadModels } =
    await import('../../../infra/postgres/readModels/readModels.ts');
  return openPostgresReadModels({ databaseUrl, poolSize });
}

/** Reads the transparency log that one of the processes grows. Opens without waiting. */
export async function openTiles(databaseUrl: string) {
  const postgres = await import('../../../infra/postgres/tiles/reader.ts');
  return postgres.openPostgresTileReader(databaseUrl);
}

/**
 * What a replica counts and says together with the others; it is called `name` there. Opens without
 * waiting for the server.
 */
export async function openSharedState(
  opened: AsyncDisposableStack,
  databaseUrl: string,
  name: string,
): Promise<{ rateLimiter: RateLimiter; broadcast: Broadcast }> {
  const { openRateLimits } = await import('../../../infra/postgres/rateLimits.ts');
  const { openPostgresBroadcast } = await import('../../../infra/postgres/broadcast.ts');
  const counts = opened.adopt(openRateLimits(databaseUrl), ({ close }) => close());
  const broadcast = opened.adopt(openPostgresBroadcast(databaseUrl, name), ({ close }) => close());
  return { rateLimiter: createSharedRateLimiter(counts), broadcast };
}

/**
 * Looks whether the database can carry what services need of it, and migrates it where the role
 * may. Errors: `configuration_invalid`, `store_unavailable`.
 */
export async function testDatabase(databaseUrl: string): Promise<void> {
  const postgres = await import('../../../infra/postgres/connectivityCheck.ts');
  await postgres.checkConnectivity(databaseUrl);
}

/**
 * Looks whether the database is one of Turnlog's, for a command that must not make it one. Errors:
 * `configuration_invalid` where it has none of its tables, `store_unavailable`.
 */
export async function requireDatabaseTables(databaseUrl: string): Promise<void> {
  const postgres = await import('../../../infra/postgres/requireTables.ts');
  await postgres.requireTables(databaseUrl);
}

/** A part that keeps the process from serving on a database that can't carry it. */
export const databasePart = (databaseUrl: string, logger: Logger): ProcessPart => ({
  prepare: (signal) => retryUntilStoreAvailable(() => testDatabase(databaseUrl), logger, signal),
});

/**
 * Migrates the database of the configuration as its owner, for services that connect as one of the
 * roles. Resolves with all roles that may. Errors: `configuration_invalid`, `store_unavailable`.
 */
export async function migrateDatabase(
  { DATABASE_URL: databaseUrl }: Config,
  roles: readonly string[],
): Promise<string[]> {
  if (databaseUrl === undefined)
    throw new TurnlogError('configuration_invalid', 'DATABASE_URL is not set.');
  const { migrateForServices } = await import('../../../infra/postgres/migrateForServices.ts');
  return migrateForServices(databaseUrl, roles);
}

/**
 * The list of instances, opened with its first use: its server may be away while a process starts.
 */
export function openInstanceList(databaseUrl: string): Instances {
  let opening: Promise<Instances> | undefined;

  async function open(): Promise<Instances> {
    const { openPostgresInstances } = await import('../../../infra/postgres/leases/instances.ts');
    return openPostgresInstances({ databaseUrl });
  }

  const opened = (): Promise<Instances> =>
    (opening ??= open().catch((error: unknown) => {
      opening = undefined;
      throw error;
    }));

  return {
    register: async (instanceId) => (await opened()).register(instanceId),
    listDeadInstances: async (olderThanMs) => (await opened()).listDeadInstances(olderThanMs),
    list: async () => (await opened()).list(),
    forget: async (dead) => (await opened()).forget(dead),
    close: async () => (await opening?.catch(() => undefined))?.close(),
  };
}

/** Does the work in one process at a time. Errors: those of the work, `store_unavailable`. */
export async function runRetentionExclusively(
  databaseUrl: string,
  work: (lost: AbortSignal) => Promise<void>,
): Promise<boolean> {
  const postgres = await import('../../../infra/postgres/leases/retentionLease.ts');
  return postgres.withRetentionLease(databaseUrl, work);
}

/**
 * Waits until this process is the active projector; undefined when the signal aborted first.
 * Errors: `store_unavailable`, `configuration_invalid` for a database that can't carry it.
 */
const acquireProjectorLeadership =
  (databaseUrl: string, logger: ProjectorLogger) =>
  async (signal: AbortSignal): Promise<ActiveProjectionStore | undefined> => {
    // A database that is away is waited for below.
    await testDatabase(databaseUrl).catch((error: unknown) => {
      if (!isTurnlogError(error, 'store_unavailable')) throw error;
    });
    const { openPostgresProjectionStore } =
      await import('../../../infra/postgres/readModels/projectionStore.ts');
    return openPostgresProjectionStore({
      databaseUrl,
      signal,
      onFailure: (error, retryInMs) =>
        logger.warn(
          { err: error, retry_in_ms: retryInMs },
          'The database of the read models is away; this projector tries again',
        ),
    });
  };

/** Errors: `rebuild_running` while another rebuild runs, `store_unavailable`. */
export async function openDatabaseRebuild(databaseUrl: string): Promise<RebuildStore> {
  const { openPostgresRebuildStore } =
    await import('../../../infra/postgres/readModels/rebuildStore.ts');
  return openPostgresRebuildStore({ databaseUrl });
}

/** What a projector works on. */
export const projectorStores = (databaseUrl: string, logger: ProjectorLogger) => ({
  acquireLeadership: acquireProjectorLeadership(databaseUrl, logger),
  openRebuild: () => openDatabaseRebuild(databaseUrl),
});
