import { TurnlogError } from '../lib/errors/turnlogError.ts';
import { createFairSemaphore } from '../lib/concurrency/fairSemaphore.ts';
import { LIMITS } from '../limits.ts';
import type { UnreachableReason } from './webhookSender.ts';

const urlError = (message: string): TurnlogError =>
  new TurnlogError('invalid_request', `The request body is not valid: "url" ${message}.`, {
    details: { url: { message: `"url" ${message}.`, path: '/url' } },
  });

const ALLOWED_BY = 'unless the operator sets WEBHOOKS_ALLOW_PRIVATE';

/** Names that no name server may resolve (RFC 6761, RFC 7686). */
const NEVER_RESOLVED = /(^|\.)(invalid|onion)\.?$/;
/** Labels of 1 to 63 characters, and 253 in all (RFC 1035). IPv6 addresses have brackets. */
const HOST_NAME = /^(?=.{1,254}$)([^.]{1,63}\.)*[^.]{1,63}\.?$|^\[/;

const UNREACHABLE: Readonly<Record<UnreachableReason, string>> = {
  unknown_name: 'must have a host name that name servers know',
  not_public: `must not lead to a private, loopback, link-local or reserved address, ${ALLOWED_BY}`,
};

/** How the addresses of webhooks are checked. */
export interface AddressRules {
  /** Allows private addresses, and addresses without TLS. */
  allowPrivate: boolean;
  /**
   * Looks the host up for an account; undefined if a message could be delivered. Throws
   * `rate_limited` or `overloaded` while too many others are looked up.
   */
  findUnreachable: (url: string, accountId: string) => Promise<UnreachableReason | undefined>;
}

/** Each look-up opens sockets: limits concurrent look-ups, fairly across accounts. */
export function limitLookups(
  find: (url: string) => Promise<UnreachableReason | undefined>,
): AddressRules['findUnreachable'] {
  const { lookups: permits, lookupWaitMs: waitMs } = LIMITS.webhooks;
  const semaphore = createFairSemaphore('webhook_lookups', { permits, bytes: Infinity });
  // The wait is short, and is not cut off when the process stops.
  const { signal } = new AbortController();
  return async (url, account_id) => {
    using _permit = await semaphore.acquire({ account_id }, { waitMs, signal });
    return await find(url);
  };
}

function requireValidUrl(url: string, allowPrivate: boolean): string {
  if (!URL.canParse(url)) throw urlError('must be an absolute URL');
  const { protocol, username, password, hash, href, hostname, port } = new URL(url);
  const allowed = allowPrivate ? ['https:', 'http:'] : ['https:'];
  if (!allowed.includes(protocol))
    throw urlError(
      allowPrivate
        ? 'must begin with https:// or http://'
        : `must begin with https://, ${ALLOWED_BY}`,
    );
  if (username + password !== '') throw urlError('must not carry a user or a password');
  if (hash !== '') throw urlError('must not have a fragment');
  if (port === '0') throw urlError('must not have the port 0');
  if (href.length > LIMITS.web.urlChars)
    throw urlError(`must not be longer than ${LIMITS.web.urlChars} characters once it is encoded`);
  if (!HOST_NAME.test(hostname))
    throw urlError('must have a host name whose labels have 1 to 63 characters, 253 in all');
  if (NEVER_RESOLVED.test(hostname))
    throw urlError('must not have a host name that never resolves (.invalid, .onion)');
  return href;
}

/**
 * Validates and normalizes an address to which messages can be delivered now. Each delivery looks the
 * host up again. Errors: `invalid_request`, `rate_limited`, `overloaded`.
 */
export async function requireWebhookUrl(
  { allowPrivate, findUnreachable }: AddressRules,
  accountId: string,
  url: string,
): Promise<string> {
  const href = requireValidUrl(url, allowPrivate);
  const reason = await findUnreachable(href, accountId);
  if (reason) throw urlError(UNREACHABLE[reason]);
  return href;
}
