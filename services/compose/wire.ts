import type { Config } from '../../shared/config.ts';
import type { Logger } from '../../shared/logger.ts';
import type { ServiceName } from '../server/serviceNames.ts';
import type { Turnlog } from '../server/turnlog.ts';
import { wireEmbedded } from './embedded.ts';
import { wireRelay } from './relayAlone.ts';
import { wireReplica } from './replica.ts';

/** Wires the services of one process as the configuration says. Errors: those of the three ways. */
export function wire(
  config: Config,
  logger: Logger,
  services: readonly ServiceName[],
): Promise<Turnlog> {
  const { DATABASE_URL } = config;
  if (services.every((name) => name === 'relay')) return wireRelay(config, logger);
  return DATABASE_URL === undefined
    ? wireEmbedded(config, logger, services.includes('relay'))
    : wireReplica({ ...config, DATABASE_URL }, logger, services);
}
