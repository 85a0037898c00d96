/** What the rules below need to know of the options. */
interface Connections {
  ALLOW_PLAINTEXT_PASSWORDS?: boolean;
  KAFKA_BROKERS?: string | undefined;
  KAFKA_TLS?: boolean;
  KAFKA_USERNAME?: string | undefined;
  EVENTSTOREDB_URL?: string | undefined;
  DATABASE_URL?: string | undefined;
}

/** The part of a URL before the path that names a user, and the one that names hosts. */
const AUTHORITY = /^[\w+.-]+:\/\/(?:([^/?#]*)@)?([^/?#]*)/;

const isLoopback = (host: string): boolean =>
  /^(localhost|127(\.\d{1,3}){3}|\[::1\]|)$/i.test(host.replace(/:\d*$/, ''));

const leavesMachine = (hosts: string): boolean =>
  hosts.split(',').some((host) => !isLoopback(host.trim()));

/** Where a password goes over the network to, by a URL that asks for no TLS; else undefined. */
function remoteWithPassword(url: string | undefined): string | undefined {
  const [, user, hosts = ''] = AUTHORITY.exec(url ?? '') ?? [];
  return user?.includes(':') && leavesMachine(hosts) ? hosts : undefined;
}

const MEANT = 'or set ALLOW_PLAINTEXT_PASSWORDS=true where the network is trusted';

/**
 * Passwords that would be sent to another host in the clear, by option, as the rest of a sentence:
 * refused, because nothing but a mistake, or a trusted network that the operator can name, asks for
 * it.
 */
export function plaintextPasswords(config: Connections): Record<string, string> {
  if (config.ALLOW_PLAINTEXT_PASSWORDS === true) return {};
  const found: Record<string, string> = {};
  const { KAFKA_BROKERS: brokers = '', KAFKA_USERNAME: user, EVENTSTOREDB_URL: cluster } = config;
  if (user !== undefined && config.KAFKA_TLS !== true && leavesMachine(brokers))
    found['KAFKA_TLS'] =
      `must be true where KAFKA_USERNAME is set and a broker is another host: the password could be read or guessed on the way, ${MEANT}`;
  const clear = /[?&]tls=false(&|$)/i.test(cluster ?? '');
  if (clear && remoteWithPassword(cluster) !== undefined)
    found['EVENTSTOREDB_URL'] =
      `must not name a password with tls=false and another host: it could be read on the way. Leave the password out, which a server without TLS does not look at, ${MEANT}`;
  return found;
}

/**
 * A sentence where the password of PostgreSQL goes to another host without TLS; else undefined. It
 * is a warning, because that is how databases in a network of containers are reached, and the
 * server's usual exchange (SCRAM) does not send the password itself.
 */
export function databaseInTheClear(config: Connections): string | undefined {
  const { ALLOW_PLAINTEXT_PASSWORDS: meant, DATABASE_URL: url } = config;
  if (meant === true || remoteWithPassword(url) === undefined) return undefined;
  if (/[?&](sslmode=(?!disable)|ssl=(true|1)|sslrootcert=)/i.test(url ?? '')) return undefined;
  return `DATABASE_URL leads to another host without TLS, so that all that is read and written can be read on the way: add sslmode=verify-full, ${MEANT}.`;
}
