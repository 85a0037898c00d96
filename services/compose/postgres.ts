import type { PostgresReadModels } from '../../infra/postgres/readModels/readModels.ts';
import type { Instances } from '../../shared/ports/instances.ts';
import type { ActiveProjectionStore, RebuildStore } from '../../shared/ports/readModels.ts';
import type { ProjectorLogger } from '../projector/projection.ts';

export type { PostgresReadModels };

/**
 * The client of PostgreSQL is loaded only where a database is configured. Opens without waiting for
 * the server.
 */
export async function openReadModels(databaseUrl: string): Promise<PostgresReadModels> {
  const { openPostgresReadModels } = await import('../../infra/postgres/readModels/readModels.ts');
  return openPostgresReadModels({ databaseUrl });
}

/**
 * The list of instances, opened with its first use: its server may be away while a process starts.
 */
export function openInstances(databaseUrl: string): Instances {
  let opening: Promise<Instances> | undefined;

  async function open(): Promise<Instances> {
    const { openPostgresInstances } = await import('../../infra/postgres/instances.ts');
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

/**
 * Waits until this process is the active projector; undefined when the signal aborted first.
 * Errors: `store_unavailable`.
 */
const becomeActive =
  (databaseUrl: string, logger: ProjectorLogger) =>
  async (signal: AbortSignal): Promise<ActiveProjectionStore | undefined> => {
    const { openPostgresProjectionStore } =
      await import('../../infra/postgres/readModels/projectionStore.ts');
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
export async function openRebuildStore(databaseUrl: string): Promise<RebuildStore> {
  const { openPostgresRebuildStore } =
    await import('../../infra/postgres/readModels/rebuildStore.ts');
  return openPostgresRebuildStore({ databaseUrl });
}

/** What a projector works on. */
export const projectorStores = (databaseUrl: string, logger: ProjectorLogger) => ({
  becomeActive: becomeActive(databaseUrl, logger),
  openRebuild: () => openRebuildStore(databaseUrl),
});
