import type { PostgresReadModels } from '../../../infra/postgres/readModels/readModels.ts';
import { createSharedRateLimiter } from '../../../infra/ratelimit/shared.ts';
import type { Broadcast } from '../../../shared/ports/broadcast.ts';
import type { Instances } from '../../../shared/ports/instances.ts';
import type { Config } from '../../../shared/lib/config/config.ts';
import { isTurnlogError, TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import type { Logger } from '../../../shared/lib/logger.ts';
import type { RateLimiter } from '../../../shared/ports/rateLimiter.ts';
import type { ActiveProjectionStore, RebuildStore } from '../../../shared/ports/readModels.ts';
import type { LiveRows } from '../../../shared/readModels/integrity/rowReader.ts';
import type { ProjectorLogger } from '../../followers/projector/projection.ts';
import { retryUntilStoreAvailable } from '../../process/startup/retryUntilStoreAvailable.ts';
import type { ProcessPart } from '../../process/processParts.ts';

// The PostgreSQL client is loaded only if a database is configured: hence the dynamic imports.

export type { PostgresReadModels };

/** Opens the read models without waiting for the server. */
export async function openReplicaReadModels(
  databaseUrl: string,
  poolSize: number,
): Promise<PostgresReadModels> {
  const { openPostgresReadModels } =
    await import('../../../infra/postgres/readModels/readModels.ts');
  return openPostgresReadModels({ databaseUrl, poolSize });
}

/** Opens the transparency log for reading, without waiting for the server. */
export async function openTiles(databaseUrl: string) {
  const postgres = await import('../../../infra/postgres/tiles/reader.ts');
  return postgres.openPostgresTileReader(databaseUrl);
}

/**
 * Opens the rate limits and the broadcast that replicas share, without waiting for the server; `name`
 * identifies this replica.
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
 * Checks that the database meets the requirements of the services, and migrates it if the role has
 * the rights.
 */
export async function testDatabase(databaseUrl: string): Promise<void> {
  const postgres = await import('../../../infra/postgres/connectivityCheck.ts');
  await postgres.checkConnectivity(databaseUrl);
}

/** Rejects with `configuration_invalid` unless the database has Turnlog's tables. Creates nothing. */
export async function requireDatabaseTables(databaseUrl: string): Promise<void> {
  const postgres = await import('../../../infra/postgres/requireTables.ts');
  await postgres.requireTables(databaseUrl);
}

/** The part that prevents serving with a database that does not meet the requirements. */
export const databasePart = (databaseUrl: string, logger: Logger): ProcessPart => ({
  prepare: (signal) => retryUntilStoreAvailable(() => testDatabase(databaseUrl), logger, signal),
});

/**
 * Migrates the configured database as its owner, and grants the roles access. Resolves with all roles
 * that have access.
 */
export async function migrateDatabase(
  { DATABASE_URL: databaseUrl }: Config,
  roles: readonly string[],
): Promise<string[]> {
  if (databaseUrl === undefined)
    throw new TurnlogError(
      'configuration_invalid',
      'Set DATABASE_URL to the PostgreSQL database of the read models, for example postgres://owner:password@127.0.0.1:5432/turnlog.',
    );
  const { migrateForServices } = await import('../../../infra/postgres/migrateForServices.ts');
  return migrateForServices(databaseUrl, roles);
}

/** The list of instances, opened on first use: the server may be unavailable during a start. */
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

/** Does the work in one process at a time; resolves with false if another process does it. */
export async function runRetentionExclusively(
  databaseUrl: string,
  work: (lost: AbortSignal) => Promise<void>,
): Promise<boolean> {
  const postgres = await import('../../../infra/postgres/leases/retentionLease.ts');
  return postgres.withRetentionLease(databaseUrl, work);
}

/** Waits until this process is the active projector; undefined if the signal aborts first. */
const acquireProjectorLeadership =
  (databaseUrl: string, logger: ProjectorLogger) =>
  async (signal: AbortSignal): Promise<ActiveProjectionStore | undefined> => {
    // If the database is unavailable, the call below waits for it.
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
          'the database of the read models is unavailable; the projector retries',
        ),
    });
  };

/** Opens a rebuild of the read models. Rejects with `rebuild_running` while another one runs. */
export async function openDatabaseRebuild(databaseUrl: string): Promise<RebuildStore> {
  const { openPostgresRebuildStore } =
    await import('../../../infra/postgres/readModels/rebuildStore.ts');
  return openPostgresRebuildStore({ databaseUrl });
}

/** Opens the live rows for a verification. Rejects with `store_unavailable`. */
export async function openDatabaseRows(databaseUrl: string): Promise<LiveRows> {
  const { openPostgresLiveRows } = await import('../../../infra/postgres/readModels/liveRows.ts');
  return openPostgresLiveRows({ databaseUrl });
}

/** The stores of a projector. */
export const projectorStores = (databaseUrl: string, logger: ProjectorLogger) => ({
  acquireLeadership: acquireProjectorLeadership(databaseUrl, logger),
  openRebuild: () => openDatabaseRebuild(databaseUrl),
});
