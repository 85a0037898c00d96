import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { writeFileAtomically } from '../../../infra/files/atomicWrite.ts';
import { readRegularFileSync } from '../../../infra/lib/regularFile.ts';
import { dataFolderError } from '../../../infra/sqlite/dataFolder.ts';
import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import type { Instance } from '../../../shared/runs/context.ts';
import { isPastDeadline } from '../../../shared/runs/recovery/interruptTurn.ts';
import type { EmbeddedLocation } from '../logLocation.ts';
import { systemClock, systemIds } from '../system.ts';

/** Every event of a turn that begins has it. */
const INSTANCE_ID = /^[\w-]{1,64}$/;

/** The file of the instance id, which the first start of a server creates after its keys. */
export const instanceIdFile = ({ dataFolder }: Pick<EmbeddedLocation, 'dataFolder'>): string =>
  join(dataFolder, 'instance-id');

/**
 * The instance id of the folder's server, created at the first start. The server lock ensures that
 * only one process uses it. It is durable before a turn names it, because only a server with the same id
 * closes the turns that a crash left open in a cluster.
 */
async function readOrCreateInstanceId(
  place: Pick<EmbeddedLocation, 'dataFolder'>,
): Promise<string> {
  const file = instanceIdFile(place);
  try {
    const existing = existsSync(file) ? readRegularFileSync(file).toString().trim() : '';
    if (INSTANCE_ID.test(existing)) return existing;
    if (existing !== '')
      throw new TurnlogError(
        'configuration_invalid',
        `The file ${file} is damaged. Remove it: the next start creates another one.`,
      );
    const created = systemIds.uuid();
    await writeFileAtomically({ path: file, bytes: `${created}\n` });
    return created;
  } catch (error) {
    throw dataFolderError(place.dataFolder, error);
  }
}

/** The instance of the data folder's server. Errors: `configuration_invalid`. */
export async function openInstance(
  place: Pick<EmbeddedLocation, 'dataFolder' | 'log'>,
): Promise<Instance> {
  const { log } = place;
  const id = await readOrCreateInstanceId(place);
  return {
    id,
    // The lock excludes other servers of this folder's log, whatever their instance id was. A cluster
    // may have other servers.
    isGone: (owner) => 'folder' in log || owner === id,
    // By the local clock. It only matters for servers that share a cluster without a database: they have
    // no other way to judge each other's turns.
    isOverdue: ({ deadline }) => isPastDeadline(deadline, systemClock.now()),
  };
}
