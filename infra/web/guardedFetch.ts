import { LIMITS } from '../../shared/limits.ts';
import { isTurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import { abortable } from '../../shared/lib/concurrency/abortable.ts';
import { isPublicAddress } from './addressGuard.ts';
import { exchange, type Answered } from './exchange.ts';
import { webFailed, webRefused } from './failures.ts';
import { addressesOf, resolveName, type Resolve } from './resolve.ts';

export interface GuardOptions {
  /** Also addresses that are not public: for an operator who says so, and for tests. */
  allowPrivate: boolean;
  /** Redirects of a GET that are followed; with 0, and of a POST, a redirect is the answer. */
  redirects: number;
  /** Of the answer's body that are read, as unpacked. */
  bytes: number;
  /** From the first look-up to the last byte. */
  ms: number;
  resolve?: Resolve;
  /** Authorities that are trusted instead of the system's, as PEM. */
  ca?: string;
}

export interface GuardedRequest {
  url: string;
  method: 'GET' | 'POST';
  /** Go to each server that a redirect leads to: no secrets where redirects are followed. */
  headers: Readonly<Record<string, string>>;
  body?: string;
}

/** The answer of the last server; a body that is longer than what is read is `truncated`. */
export interface GuardedAnswer extends Answered {
  /** Where it came from, after redirects. */
  url: string;
}

/** Fetches a URL that somebody else named. */
export type GuardedFetch = (request: GuardedRequest, signal: AbortSignal) => Promise<GuardedAnswer>;

const REDIRECTS = new Set([301, 302, 303, 307, 308]);

/**
 * The URL, if it may be asked: http or https, at any port, without credentials.
 * Errors: `web_refused` that says why not.
 */
export function checkUrl(text: string, base?: URL): URL {
  if (text.length > LIMITS.web.urlChars)
    throw webRefused(`is longer than ${LIMITS.web.urlChars} characters`);
  const url = URL.parse(text, base?.href);
  if (!url) throw webRefused('is not a URL');
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw webRefused('has to begin with http:// or https://');
  if (url.username !== '' || url.password !== '') throw webRefused('must not hold credentials');
  return url;
}

/** Each address that may be connected to is checked: one of them that is not public refuses the host. */
async function checkedAddresses(
  { hostname }: URL,
  { allowPrivate, resolve = resolveName }: GuardOptions,
): Promise<string[]> {
  // A name server may tell of thousands.
  const addresses = (await addressesOf(hostname, resolve)).slice(0, LIMITS.web.addresses);
  if (addresses.length === 0) throw webFailed('has a name that no name server knows');
  if (!allowPrivate && !addresses.every((address) => isPublicAddress(address)))
    throw webRefused('leads to a network that is not public');
  return addresses;
}

function redirectOf({ status, headers }: Answered, from: URL): URL | undefined {
  const { location } = headers;
  return REDIRECTS.has(status) && location !== undefined ? checkUrl(location, from) : undefined;
}

async function follow(
  request: GuardedRequest,
  options: GuardOptions,
  signal: AbortSignal,
): Promise<GuardedAnswer> {
  const { method, headers, body } = request;
  const { ca } = options;
  const bytes = (status: number): number =>
    redirects > 0 && REDIRECTS.has(status) ? 0 : options.bytes;
  const redirects = method === 'GET' ? options.redirects : 0;
  let url = checkUrl(request.url);
  for (let followed = 0; ; followed += 1) {
    const addresses = await checkedAddresses(url, options);
    const answer = await exchange({ url, addresses, method, headers, body, bytes, ca }, signal);
    const next = redirects > 0 ? redirectOf(answer, url) : undefined;
    if (!next) return { ...answer, url: url.href };
    if (followed === redirects) throw webFailed(`redirects more than ${redirects} times`);
    url = next;
  }
}

const codeOf = (error: unknown): string => {
  const { code } = (error as Error & { code?: unknown }) ?? {};
  return typeof code === 'string' ? code : 'no reason given';
};

/**
 * Fetches from addresses on the internet and from nowhere else: names are resolved here, every
 * address is checked, the connection goes to a checked one, and all of it again after a redirect.
 * Whatever the server does, it ends within `ms` and holds no more than `bytes`.
 * Errors: `web_refused` where the URL must not be asked, `web_failed` where the server can't be
 * asked or does not answer; the signal's reason. Their sentences hold nothing of the server's.
 */
export function createGuardedFetch(options: GuardOptions): GuardedFetch {
  return async (request, signal) => {
    signal.throwIfAborted();
    const limit = new AbortController();
    const tooLate = webFailed(`did not answer within ${options.ms / 1_000} s`);
    const timer = setTimeout(() => limit.abort(tooLate), options.ms);
    const leave = (): void => limit.abort(signal.reason);
    signal.addEventListener('abort', leave, { once: true });
    try {
      return await abortable(follow(request, options, limit.signal), limit.signal);
    } catch (error) {
      limit.signal.throwIfAborted();
      if (isTurnlogError(error)) throw error;
      throw webFailed(`can’t be reached, or broke off (${codeOf(error)})`, error);
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', leave);
    }
  };
}
