import { existsSync } from 'node:fs';
import { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';

/** One node's address. */
export interface Host {
  address: string;
  port: number;
}

/**
 * True for what can stand in a connection string: what a server says of where others are may be
 * anything.
 */
export const isHost = ({ address, port }: Host): boolean =>
  /^[\w.-]{1,253}$/.test(address) && Number.isInteger(port) && port >= 1 && port <= 65_535;

export const hostName = ({ address, port }: Host): string => `${address}:${port}`;

export interface Target {
  /** Where to begin. */
  seeds: Host[];
  /** Whether the nodes' gossip says which of them to use; else the one host is used as it is. */
  cluster: boolean;
  preference: 'leader' | 'follower' | 'random' | 'readonlyreplica';
  /** The connection string of one host, with everything else that the configured one says. */
  of(host: Host, keepAliveMs?: number): string;
  /** The file with the certificates to trust; the system's own when undefined. */
  caFile: string | undefined;
  /** Options that nobody knows, or that have no effect here. */
  ignored: string[];
}

const FORM =
  /^esdb(?<discover>\+discover)?:\/\/(?<user>[^@/?]*@)?(?<hosts>[^/?@]+)\/?(?<query>\?.*)?$/;
const DEFAULT_PORT = 2113;
/** The client's own default; it warns of anything shorter. */
export const KEEP_ALIVE_MS = 10_000;

const invalid = (message: string): TurnlogError =>
  new TurnlogError('configuration_invalid', message);

function toHost(text: string): Host {
  const [address = '', port = String(DEFAULT_PORT), ...rest] = text.trim().split(':');
  const host = { address, port: Number(port) };
  if (rest.length > 0 || !isHost(host)) {
    throw invalid(
      `The URL of the event store names the host ${JSON.stringify(text)}; write it as name:port.`,
    );
  }
  return host;
}

/** Options are named as the client takes them: without regard to case, dashes and underscores. */
const nameOf = (pair: string): string =>
  (pair.split('=', 1)[0] ?? '').toLowerCase().replace(/[_-]/g, '');

function optionsOf(pairs: readonly string[]): Map<string, string> {
  try {
    return new Map(
      pairs.map((pair) => [nameOf(pair), decodeURIComponent(pair.slice(pair.indexOf('=') + 1))]),
    );
  } catch {
    throw invalid(
      'The URL of the event store has an option whose value is not well encoded (%20 and the like).',
    );
  }
}

/**
 * What the client of one host is told. It prints the whole URL, password included, for any option
 * that it does not know.
 */
const PASSED_ON = new Set([
  'tls',
  'tlscafile',
  'usercertfile',
  'userkeyfile',
  'connectionname',
  'defaultdeadline',
  'keepalivetimeout',
  'throwonappendfailure',
]);
/** Ours to decide: a client of one host discovers nothing, and has a socket of its own. */
const OURS = new Set([
  'nodepreference',
  'dnsdiscover',
  'keepaliveinterval',
  'maxdiscoverattempts',
  'discoveryinterval',
  'gossiptimeout',
]);

function preferenceOf(options: ReadonlyMap<string, string>): Target['preference'] {
  const named = options.get('nodepreference')?.toLowerCase().replace(/[_-]/g, '') ?? 'leader';
  if (
    named === 'leader' ||
    named === 'follower' ||
    named === 'random' ||
    named === 'readonlyreplica'
  )
    return named;
  throw invalid(
    'The URL of the event store has a nodePreference that is none of leader, follower, random, readOnlyReplica.',
  );
}

/**
 * What a connection string says. `esdb+discover://` and several hosts mean a cluster: every host
 * named is asked, and what the nodes say of each other is followed.
 * Errors: `configuration_invalid` that names the part which is wrong, never the password.
 */
export function parseConnectionString(text: string): Target {
  const { discover, user = '', hosts = '', query = '?' } = FORM.exec(text.trim())?.groups ?? {};
  if (hosts === '') {
    throw invalid(
      'The URL of the event store is not a connection string of EventStoreDB (esdb://host:2113?tls=false).',
    );
  }
  const seeds = hosts.split(',').map(toHost);
  const pairs = query
    .slice(1)
    .split('&')
    .filter((pair) => pair !== '');
  const options = optionsOf(pairs);
  for (const file of ['tlscafile', 'usercertfile', 'userkeyfile']) {
    const path = options.get(file);
    if (path !== undefined && !existsSync(path)) {
      throw invalid(`The URL of the event store names the file ${path}, which is not there.`);
    }
  }
  const kept = pairs.filter((pair) => PASSED_ON.has(nameOf(pair)));
  return {
    seeds,
    cluster: discover !== undefined || seeds.length > 1,
    preference: preferenceOf(options),
    of: (host, keepAliveMs = KEEP_ALIVE_MS) =>
      `esdb://${user}${hostName(host)}?${[...kept, `keepAliveInterval=${keepAliveMs}`].join('&')}`,
    caFile: options.get('tls') === 'false' ? undefined : options.get('tlscafile'),
    ignored: pairs.map(nameOf).filter((name) => !PASSED_ON.has(name) && !OURS.has(name)),
  };
}
