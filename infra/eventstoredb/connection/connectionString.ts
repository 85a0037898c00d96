import { existsSync } from 'node:fs';
import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import type { HostConnection } from './hostClient.ts';

/** The address of one node. */
export interface Host {
  address: string;
  port: number;
}

/** Whether a connection string can contain the host. Servers may report arbitrary addresses. */
export const isValidHost = ({ address, port }: Host): boolean =>
  /^[\w.-]{1,253}$/.test(address) && Number.isInteger(port) && port >= 1 && port <= 65_535;

/** Formats a host as `address:port`. */
export const formatHost = ({ address, port }: Host): string => `${address}:${port}`;

export interface ConnectionTarget {
  /** The hosts of the connection string. */
  seeds: Host[];
  /** Whether gossip selects the node. Otherwise the single host is used. */
  isCluster: boolean;
  nodePreference: 'leader' | 'follower' | 'random' | 'readonlyreplica';
  /** The connection to one host, with the configured credentials and client options. */
  connectionTo(host: Host, keepAliveMs?: number): HostConnection;
  /** Whether connections are encrypted. */
  tls: boolean;
  /** Whether calls have a user: by name or by certificate. */
  hasUser: boolean;
  /** The file of the trusted certificates; undefined for those that Node.js trusts. */
  caFile: string | undefined;
  /** Names of options that have no effect. */
  ignoredOptions: string[];
}

const CONNECTION_STRING =
  /^(?:esdb|kurrentdb)(?<discover>\+discover)?:\/\/(?<user>[^@/?]*@)?(?<hosts>[^/?@]+)\/?(?<query>\?.*)?$/;
const DEFAULT_PORT = 2113;
/** The client's default. The client warns about shorter intervals. */
export const KEEP_ALIVE_MS = 10_000;

const invalid = (message: string): TurnlogError =>
  new TurnlogError('configuration_invalid', message);

function parseHost(text: string): Host {
  const [address = '', port = String(DEFAULT_PORT), ...rest] = text.trim().split(':');
  const host = { address, port: Number(port) };
  if (rest.length > 0 || !isValidHost(host)) {
    throw invalid(
      `The URL of the event store names the host ${JSON.stringify(text)}; write it as name:port.`,
    );
  }
  return host;
}

/** Normalizes an option or value like the client: ignores case, dashes and underscores. */
const normalize = (text: string): string => text.toLowerCase().replace(/[_-]/g, '');

const optionName = (pair: string): string => normalize(pair.split('=', 1)[0] ?? '');

function parseOptions(pairs: readonly string[]): Map<string, string> {
  try {
    return new Map(
      pairs.map((pair) => [
        optionName(pair),
        decodeURIComponent(pair.slice(pair.indexOf('=') + 1)),
      ]),
    );
  } catch {
    throw invalid(
      'The URL of the event store has an option whose value is not percent-encoded correctly.',
    );
  }
}

/**
 * Options that the client receives. For any option that it does not know, the client prints the
 * whole URL, including the password.
 */
const CLIENT_OPTIONS = new Set([
  'tls',
  'tlscafile',
  'usercertfile',
  'userkeyfile',
  'connectionname',
  'defaultdeadline',
  'keepalivetimeout',
  'throwonappendfailure',
]);
/** Options that this adapter handles: a client of one host needs no discovery. */
const ADAPTER_OPTIONS = new Set([
  'nodepreference',
  'dnsdiscover',
  'keepaliveinterval',
  'maxdiscoverattempts',
  'discoveryinterval',
  'gossiptimeout',
  'compression',
]);

function parseNodePreference(
  options: ReadonlyMap<string, string>,
): ConnectionTarget['nodePreference'] {
  const preference = normalize(options.get('nodepreference') ?? 'leader');
  if (
    preference === 'leader' ||
    preference === 'follower' ||
    preference === 'random' ||
    preference === 'readonlyreplica'
  )
    return preference;
  throw invalid(
    'The URL of the event store has an unknown nodePreference; use leader, follower, random or readOnlyReplica.',
  );
}

/** Off by default: between machines of one network, compression costs more time than it saves. */
function parseCompression(options: ReadonlyMap<string, string>): boolean {
  const compression = normalize(options.get('compression') ?? 'none');
  if (compression === 'none' || compression === 'gzip') return compression === 'gzip';
  throw invalid('The URL of the event store has an unknown compression; use none or gzip.');
}

/**
 * Parses a connection string. `kurrentdb://` means the same as `esdb://`. `esdb+discover://` or several hosts describe a cluster. The error
 * `configuration_invalid` names the invalid part and never contains the password.
 */
export function parseConnectionString(text: string): ConnectionTarget {
  const {
    discover,
    user = '',
    hosts = '',
    query = '?',
  } = CONNECTION_STRING.exec(text.trim())?.groups ?? {};
  if (hosts === '') {
    throw invalid(
      'The URL of the event store is not a connection string of EventStoreDB (esdb://host:2113?tls=false).',
    );
  }
  const seeds = hosts.split(',').map(parseHost);
  const pairs = query
    .slice(1)
    .split('&')
    .filter((pair) => pair !== '');
  const options = parseOptions(pairs);
  for (const option of ['tlscafile', 'usercertfile', 'userkeyfile']) {
    const path = options.get(option);
    if (path !== undefined && !existsSync(path)) {
      throw invalid(`The URL of the event store names the file ${path}, which does not exist.`);
    }
  }
  const tls = options.get('tls')?.toLowerCase() !== 'false';
  const compression = parseCompression(options);
  const clientPairs = pairs.filter((pair) => CLIENT_OPTIONS.has(optionName(pair)));
  return {
    seeds,
    isCluster: discover !== undefined || seeds.length > 1,
    nodePreference: parseNodePreference(options),
    connectionTo: (host, keepAliveMs = KEEP_ALIVE_MS) => ({
      connectionString: `esdb://${user}${formatHost(host)}?${[...clientPairs, `keepAliveInterval=${keepAliveMs}`].join('&')}`,
      compression,
    }),
    tls,
    hasUser: user !== '' || options.has('usercertfile'),
    caFile: tls ? options.get('tlscafile') : undefined,
    ignoredOptions: pairs
      .map(optionName)
      .filter((name) => !CLIENT_OPTIONS.has(name) && !ADAPTER_OPTIONS.has(name)),
  };
}
