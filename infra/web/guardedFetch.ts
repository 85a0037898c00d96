import { BADNAME, NODATA, NOTFOUND, Resolver } from 'node:dns/promises';
import { isIP } from 'node:net';
import { LIMITS } from '../../shared/limits.ts';
import type { UnreachableReason } from '../../shared/webhooks/webhookSender.ts';
import { isTurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import { abortable } from '../../shared/lib/concurrency/abortable.ts';
import { isPublicAddress } from './ssrfGuard.ts';
import { sendHttpRequest, type HttpResponse, type ResponseHead } from './httpRequest.ts';
import { webFailedError, webRefusedError } from './failures.ts';

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

interface GuardedRequest {
  url: string;
  method: 'GET' | 'POST';
  /** Go to each server that a redirect leads to: no secrets where redirects are followed. */
  headers: Readonly<Record<string, string>>;
  body?: string;
  /** Receives the head of each server's response: what follows may fail. */
  onHead?: (head: ResponseHead) => void;
}

/** The answer of the last server; a body that is longer than what is read is `truncated`. */
export interface GuardedAnswer extends HttpResponse {
  /** The URL after redirects. */
  url: string;
}

/** Fetches a URL from an untrusted source. */
type GuardedFetch = (request: GuardedRequest, signal: AbortSignal) => Promise<GuardedAnswer>;

/**
 * Resolves with the addresses of a name, or with none where the name servers know none. Throws
 * `web_failed` where they do not answer.
 */
type Resolve = (name: string) => Promise<string[]>;

const LOCALHOST = /^(.+\.)?localhost\.?$/;

const codeOf = (error: unknown): string => {
  const { code } = (error as Error & { code?: unknown }) ?? {};
  return typeof code === 'string' ? code : 'no reason given';
};

/** Answers of name servers that a name, or an address of its kind, does not exist. */
const NO_SUCH_NAME: ReadonlySet<unknown> = new Set([NOTFOUND, NODATA, BADNAME]);

/**
 * Queries the system's name servers over sockets: a hostile name server could occupy one of the four
 * threads of the system's own look-up. Entries of a hosts file are therefore unknown, except
 * localhost.
 */
const resolveName: Resolve = async (name) => {
  if (LOCALHOST.test(name)) return ['127.0.0.1', '::1'];
  const resolver = new Resolver({ timeout: LIMITS.web.resolveMs / 5, tries: 2 });
  const timer = setTimeout(() => resolver.cancel(), LIMITS.web.resolveMs);
  try {
    const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
    const addresses = answers.flatMap((answer) =>
      answer.status === 'fulfilled' ? answer.value : [],
    );
    const failure = answers.find(
      (answer) => answer.status === 'rejected' && !NO_SUCH_NAME.has(codeOf(answer.reason)),
    );
    if (addresses.length === 0 && failure)
      throw webFailedError('has a name that could not be looked up');
    return addresses;
  } finally {
    clearTimeout(timer);
  }
};

/**
 * The addresses of a URL's host, which may be an address itself; no more than are connected to, because
 * a name server may return thousands. IPv6 has no brackets.
 */
async function addressesOf(hostname: string, resolve: Resolve): Promise<string[]> {
  const bare = hostname.replace(/^\[|\]$/g, '');
  return isIP(bare) ? [bare] : (await resolve(hostname)).slice(0, LIMITS.web.addresses);
}

const REDIRECTS = new Set([301, 302, 303, 307, 308]);

/** Parses a URL: http or https, any port, no credentials. Throws `web_refused` with the reason. */
function checkUrl(text: string, base?: URL): URL {
  if (text.length > LIMITS.web.urlChars)
    throw webRefusedError(`is longer than ${LIMITS.web.urlChars} characters`);
  const url = URL.parse(text, base?.href);
  if (!url) throw webRefusedError('is not a URL');
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw webRefusedError('has to begin with http:// or https://');
  if (url.username !== '' || url.password !== '')
    throw webRefusedError('must not hold credentials');
  return url;
}

/** Checks every address of the host. One address that is not public refuses the host. */
async function checkedAddresses(
  { hostname }: URL,
  { allowPrivate, resolve = resolveName }: GuardOptions,
): Promise<string[]> {
  const addresses = await addressesOf(hostname, resolve);
  if (addresses.length === 0) throw webFailedError('has a name that no name server knows');
  if (!allowPrivate && !addresses.every((address) => isPublicAddress(address)))
    throw webRefusedError('leads to a network that is not public');
  return addresses;
}

/**
 * Why every request to the host of a URL would fail at present; undefined if one could succeed, or
 * where the name servers do not answer.
 */
export async function findUnreachable(
  url: string,
  { allowPrivate, resolve = resolveName }: Pick<GuardOptions, 'allowPrivate' | 'resolve'>,
): Promise<UnreachableReason | undefined> {
  let addresses: string[];
  try {
    addresses = await addressesOf(new URL(url).hostname, resolve);
  } catch (error) {
    if (isTurnlogError(error, 'web_failed')) return undefined;
    throw error;
  }
  if (addresses.length === 0) return 'unknown_name';
  const isPublic = addresses.every((address) => isPublicAddress(address));
  return allowPrivate || isPublic ? undefined : 'not_public';
}

function redirectOf({ status, headers }: HttpResponse, from: URL): URL | undefined {
  const { location } = headers;
  return REDIRECTS.has(status) && location !== undefined ? checkUrl(location, from) : undefined;
}

async function follow(
  request: GuardedRequest,
  options: GuardOptions,
  signal: AbortSignal,
): Promise<GuardedAnswer> {
  const { method, headers, body, onHead } = request;
  const { ca } = options;
  const bytes = (status: number): number =>
    redirects > 0 && REDIRECTS.has(status) ? 0 : options.bytes;
  const redirects = method === 'GET' ? options.redirects : 0;
  let url = checkUrl(request.url);
  for (let followed = 0; ; followed += 1) {
    const addresses = await checkedAddresses(url, options);
    const answer = await sendHttpRequest(
      { url, addresses, method, headers, body, bytes, ca, onHead },
      signal,
    );
    const next = redirects > 0 ? redirectOf(answer, url) : undefined;
    if (!next) return { ...answer, url: url.href };
    if (followed === redirects) throw webFailedError(`redirects more than ${redirects} times`);
    url = next;
  }
}

/**
 * Fetches from public addresses only: it resolves the name, checks every address and connects to a
 * checked one, also after each redirect. It ends within `ms` and holds at most `bytes`. Throws
 * `web_refused` for a URL that is not allowed, and `web_failed` for a server that fails; the messages
 * contain nothing from the server.
 */
export function createGuardedFetch(options: GuardOptions): GuardedFetch {
  return async (request, signal) => {
    signal.throwIfAborted();
    const limit = new AbortController();
    const tooLate = webFailedError(`did not answer within ${options.ms / 1_000} s`);
    const timer = setTimeout(() => limit.abort(tooLate), options.ms);
    const leave = (): void => limit.abort(signal.reason);
    signal.addEventListener('abort', leave, { once: true });
    try {
      return await abortable(follow(request, options, limit.signal), limit.signal);
    } catch (error) {
      limit.signal.throwIfAborted();
      if (isTurnlogError(error)) throw error;
      throw webFailedError(`can’t be reached, or broke off (${codeOf(error)})`, error);
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', leave);
    }
  };
}
