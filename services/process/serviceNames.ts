import { parseArgs } from 'node:util';
import type { Config } from '../../shared/lib/config/config.ts';
import { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';

export const SERVICE_NAMES = ['api', 'projector', 'relay'] as const;
export type ServiceName = (typeof SERVICE_NAMES)[number];

const configurationError = (message: string): TurnlogError =>
  new TurnlogError('configuration_invalid', message);

/** All services that the configuration enables. */
export const enabledServices = ({ KAFKA_BROKERS }: Config): ServiceName[] =>
  SERVICE_NAMES.filter((name) => name !== 'relay' || KAFKA_BROKERS !== undefined);

function parseServiceList(list: string): ServiceName[] {
  const names = list.split(',').map((name) => name.trim());
  const unknown = names.filter((name) => !(SERVICE_NAMES as readonly string[]).includes(name));
  if (unknown.length > 0)
    throw configurationError(
      `There is no service ${unknown.map((name) => JSON.stringify(name)).join(', ')}. --services takes ${SERVICE_NAMES.join(', ')}, separated by commas.`,
    );
  return SERVICE_NAMES.filter((name) => names.includes(name));
}

/** A service can run in a separate process only if other processes can reach its stores. */
function requireSupported(services: readonly ServiceName[], config: Config): void {
  const includes = (name: ServiceName): boolean => services.includes(name);
  if (includes('relay') && config.KAFKA_BROKERS === undefined)
    throw configurationError('The relay publishes to Kafka: set KAFKA_BROKERS.');
  if (config.EVENTSTOREDB_URL === undefined && !includes('api'))
    throw configurationError(
      'The embedded log belongs to one process, which serves the API: set EVENTSTOREDB_URL to run other services separately.',
    );
  if (config.DATABASE_URL === undefined && includes('api') !== includes('projector'))
    throw configurationError(
      'Read models in the data folder belong to one process: start api and projector together, or set DATABASE_URL.',
    );
}

/** The services to start, from the arguments of the command: `--services api,relay`. */
export function chooseServices(args: readonly string[], config: Config): ServiceName[] {
  let list: string | undefined;
  try {
    list = parseArgs({ args: [...args], options: { services: { type: 'string' } } }).values
      .services;
  } catch (error) {
    throw new TurnlogError(
      'configuration_invalid',
      `${(error as Error).message}. The only option is --services ${SERVICE_NAMES.join(',')}.`,
      { cause: error },
    );
  }
  const services = list === undefined ? enabledServices(config) : parseServiceList(list);
  requireSupported(services, config);
  return services;
}
