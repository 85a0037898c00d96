import { isIPv6, type LookupFunction } from 'node:net';
import { Client, type Dispatcher } from 'undici';
import { LIMITS } from '../../shared/limits.ts';
import { readBody, type ReadBody } from './readBody.ts';

/** What is asked of one server. */
export interface Exchange {
  url: URL;
  /** Where the connection goes, and nowhere else: they have been checked. */
  addresses: readonly string[];
  method: 'GET' | 'POST';
  headers: Readonly<Record<string, string>>;
  body: string | undefined;
  /** Of the body of an answer with this status that are read. */
  bytes(this: void, status: number): number;
  /** Authorities that are trusted instead of the system's, as PEM. */
  ca: string | undefined;
}

/** What one server answered. */
export interface Answered extends ReadBody {
  status: number;
  /** The first of each name, in small letters. */
  headers: Readonly<Record<string, string>>;
}

/** Answers a connection's own look-up with addresses that were checked before. */
const pinnedTo =
  (addresses: readonly string[]): LookupFunction =>
  (_name, { all }, callback) => {
    const entries = addresses.map((address) => ({ address, family: isIPv6(address) ? 6 : 4 }));
    if (all) callback(null, entries);
    else callback(null, entries[0]!.address, entries[0]!.family);
  };

const firstOf = (headers: Dispatcher.ResponseData['headers']): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => {
      const first = Array.isArray(value) ? value[0] : value;
      return first === undefined ? [] : [[name, first]];
    }),
  );

/**
 * One request over a connection of its own, which is closed in any case. The name in the URL is
 * what TLS asks the server to prove. Rejects with what went wrong, or the signal's reason.
 */
export async function exchange(wanted: Exchange, signal: AbortSignal): Promise<Answered> {
  const { url, addresses, method, headers, body, bytes, ca } = wanted;
  // The client knows of no socket that is not connected yet: one that never is would stay for ever.
  const over = new AbortController();
  const lookup = pinnedTo(addresses);
  const client = new Client(url.origin, {
    allowH2: false,
    maxHeaderSize: LIMITS.web.headerBytes,
    headersTimeout: 0,
    bodyTimeout: 0,
    connectTimeout: 0,
    connect: { lookup, signal: over.signal, ...(ca === undefined ? {} : { ca }) },
  });
  // What is asked of the socket after it was destroyed is nobody's concern.
  const stop = (): void => {
    void client.destroy(signal.reason as Error).catch(() => {});
    over.abort();
  };
  signal.addEventListener('abort', stop, { once: true });
  try {
    signal.throwIfAborted();
    const answer = await client.request({
      path: url.pathname + url.search,
      method,
      headers: { 'accept-encoding': 'identity', ...headers },
      body: body ?? null,
    });
    const status = answer.statusCode;
    const said = firstOf(answer.headers);
    const read = await readBody(answer.body, said['content-encoding'] ?? '', bytes(status));
    return { status, headers: said, ...read };
  } finally {
    signal.removeEventListener('abort', stop);
    void client.destroy().catch(() => {});
    over.abort();
  }
}
