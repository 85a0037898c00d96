import { isIPv6, type LookupFunction } from 'node:net';
import type { Dispatcher } from 'undici';
import { LIMITS } from '../../shared/limits.ts';
import { createByteCollector } from '../../shared/lib/memory/byteCollector.ts';
import type { Readable } from 'node:stream';
import { buildConnector, Client, requestThrough } from '../lib/http/dispatchers.ts';
import { limitInformationalResponses } from '../lib/http/informationalResponses.ts';
import { buildLimitedConnector } from '../lib/http/uncountedBytes.ts';
import { decodeContent } from './contentEncoding.ts';

/** As much of a body as was read, and whether that is all. */
interface ReadBody {
  body: Buffer;
  truncated: boolean;
}

/**
 * Reads up to `bytes` of a body after decoding, and discards the rest. It does not wait for a body of
 * 0 bytes. Throws `web_failed` as decodeContent does.
 */
async function readBody(stream: Readable, encoding: string, bytes: number): Promise<ReadBody> {
  // The reader gets errors from the iterator. After the last read they are irrelevant.
  stream.on('error', () => {});
  if (bytes === 0) {
    stream.destroy();
    return { body: Buffer.alloc(0), truncated: true };
  }
  const collector = createByteCollector(bytes);
  for await (const piece of await decodeContent(stream, encoding, bytes))
    if (!collector.add(piece as Buffer)) return { body: collector.take(), truncated: true };
  return { body: collector.take(), truncated: false };
}

/** A request to one server. */
interface HttpRequest {
  url: URL;
  /** The checked addresses. The connection goes to no other address. */
  addresses: readonly string[];
  method: 'GET' | 'POST';
  headers: Readonly<Record<string, string>>;
  body: string | undefined;
  /** How many bytes of the body are read, by the status. */
  bytes(this: void, status: number): number;
  /** Authorities that are trusted instead of the system's, as PEM. */
  ca: string | undefined;
  /** Receives the status and the headers before the body is read. */
  onHead?: ((head: ResponseHead) => void) | undefined;
}

/** The beginning of a response. */
export interface ResponseHead {
  status: number;
  /** The first of each name, in small letters. */
  headers: Readonly<Record<string, string>>;
}

/** The response of one server. */
export interface HttpResponse extends ReadBody, ResponseHead {}

/** Resolves every name to the checked addresses. */
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
 * Sends one request over a new connection, which is always closed. TLS verifies the name in the URL.
 * Rejects with the error of the connection, or with the abort reason.
 */
export async function sendHttpRequest(
  request: HttpRequest,
  signal: AbortSignal,
): Promise<HttpResponse> {
  const { url, addresses, method, headers, body, bytes, ca, onHead } = request;
  // The client can't close a socket that is still connecting, so it would stay open.
  const over = new AbortController();
  const lookup = pinnedTo(addresses);
  const client = new Client(url.origin, {
    allowH2: false,
    maxHeaderSize: LIMITS.web.headerBytes,
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: buildLimitedConnector(buildConnector, {
      timeout: 0,
      lookup,
      signal: over.signal,
      ...(ca === undefined ? {} : { ca }),
    }),
  });
  const limited = client.compose(limitInformationalResponses);
  // Errors of the destroyed socket are irrelevant.
  const stop = (): void => {
    void client.destroy(signal.reason as Error).catch(() => {});
    over.abort();
  };
  signal.addEventListener('abort', stop, { once: true });
  try {
    signal.throwIfAborted();
    const response = await requestThrough.call(limited, {
      path: url.pathname + url.search,
      method,
      headers: { 'accept-encoding': 'identity', ...headers },
      body: body ?? null,
    });
    const status = response.statusCode;
    const responseHeaders = firstOf(response.headers);
    onHead?.({ status, headers: responseHeaders });
    const read = await readBody(
      response.body,
      responseHeaders['content-encoding'] ?? '',
      bytes(status),
    );
    return { status, headers: responseHeaders, ...read };
  } finally {
    signal.removeEventListener('abort', stop);
    void client.destroy().catch(() => {});
    over.abort();
  }
}
