/** The options that the checks below need. */
interface Connections {
  ALLOW_PLAINTEXT_PASSWORDS?: boolean;
  KAFKA_BROKERS?: string | undefined;
  KAFKA_TLS?: boolean;
  KAFKA_USERNAME?: string | undefined;
  EVENTSTOREDB_URL?: string | undefined;
  DATABASE_URL?: string | undefined;
}

/** The parts of a URL that contain the user and the hosts. */
const AUTHORITY = /^[\w+.-]+:\/\/(?:([^/?#]*)@)?([^/?#]*)/;

const isLoopback = (host: string): boolean =>
  /^(localhost|127(\.\d{1,3}){3}|\[::1\]|)$/i.test(host.replace(/:\d*$/, ''));

const leavesMachine = (hosts: string): boolean =>
  hosts.split(',').some((host) => !isLoopback(host.trim()));

/**
 * The hosts to which a password would be sent over the network, according to a URL without TLS;
 * otherwise undefined.
 */
function remoteWithPassword(url: string | undefined): string | undefined {
  const [, user, hosts = ''] = AUTHORITY.exec(url ?? '') ?? [];
  return user?.includes(':') && leavesMachine(hosts) ? hosts : undefined;
}

const MEANT = 'or set ALLOW_PLAINTEXT_PASSWORDS=true where the network is trusted';

/**
 * Finds passwords that would be sent to another host in plaintext: the second half of a sentence
 * for each option. They are refused, because the cause is a mistake unless the operator explicitly
 * trusts the network.
 */
export function plaintextPasswords(config: Connections): Record<string, string> {
  if (config.ALLOW_PLAINTEXT_PASSWORDS === true) return {};
  const passwords: Record<string, string> = {};
  const { KAFKA_BROKERS: brokers = '', KAFKA_USERNAME: user, EVENTSTOREDB_URL: cluster } = config;
  if (user !== undefined && config.KAFKA_TLS !== true && leavesMachine(brokers))
    passwords['KAFKA_TLS'] =
      `must be true where KAFKA_USERNAME is set and a broker is another host: the password could be read or guessed on the way, ${MEANT}`;
  const clear = /[?&]tls=false(&|$)/i.test(cluster ?? '');
  if (clear && remoteWithPassword(cluster) !== undefined)
    passwords['EVENTSTOREDB_URL'] =
      `must not name a password with tls=false and another host: it could be read on the way. Leave the password out, which a server without TLS does not look at, ${MEANT}`;
  return passwords;
}

/**
 * A warning when the password for PostgreSQL goes to another host without TLS, otherwise undefined.
 * It is only a warning, because databases in container networks are usually reached that way, and
 * the server's default authentication (SCRAM) does not send the password itself.
 */
export function databaseInTheClear(config: Connections): string | undefined {
  const { ALLOW_PLAINTEXT_PASSWORDS: meant, DATABASE_URL: url } = config;
  if (meant === true || remoteWithPassword(url) === undefined) return undefined;
  if (/[?&](sslmode=(?!disable)|ssl=(true|1)|sslrootcert=)/i.test(url ?? '')) return undefined;
  return `DATABASE_URL leads to another host without TLS, so that all that is read and written can be read on the way: add sslmode=verify-full, ${MEANT}.`;
}
