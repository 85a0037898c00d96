import type { Context } from 'koa';
import getRawBody from 'raw-body';
import { TurnlogError } from '../../../shared/errors.ts';
import { LIMITS } from '../../../shared/limits.ts';
import type { Place, Places } from '../../../shared/places.ts';
import { ownTurn } from '../turns.ts';

const LARGE_BYTES = 64 * 1_024;

const utf8 = new TextDecoder('utf-8', { fatal: true });

const tooLarge = (cause?: unknown): TurnlogError =>
  new TurnlogError('payload_too_large', `The body is larger than ${LIMITS.http.bodyBytes} bytes.`, {
    cause,
  });

/**
 * Makes room for the body before any of it is read: for its length, or for the longest there may be
 * where that is not declared.
 * Errors: `unsupported_media_type`, `payload_too_large`, `rate_limited`, `overloaded`.
 */
export function admitBody(ctx: Context, bodies: Places, account_id: string): Place {
  requireJson(ctx);
  const length = ctx.request.length ?? LIMITS.http.bodyBytes;
  if (length > LIMITS.http.bodyBytes) throw tooLarge();
  return bodies.claim({ account_id, bytes: length });
}

/** Reads the request's JSON. Errors: `payload_too_large`, `invalid_json`, `invalid_request`. */
export async function readJsonBody(ctx: Context, place: Place): Promise<unknown> {
  const bytes = await readBytes(ctx);
  place.resize(bytes.length);
  // What is made of a large body takes milliseconds, from here to the first wait of its operation.
  if (bytes.length > LARGE_BYTES) await ownTurn();
  if (hasTooManyValues(bytes)) {
    const message = `"body" must not have more than ${LIMITS.http.bodyValues} values.`;
    throw new TurnlogError('invalid_request', `The request body is not valid: ${message}`, {
      details: { body: { message, path: '' } },
    });
  }
  try {
    return JSON.parse(utf8.decode(bytes)) as unknown;
  } catch (error) {
    throw new TurnlogError(
      'invalid_json',
      bytes.length === 0
        ? 'The body is empty; JSON is expected.'
        : 'The body is not JSON in UTF-8.',
      { cause: error },
    );
  }
}

async function readBytes(ctx: Context): Promise<Buffer> {
  const { expect } = ctx.req.headers;
  const mayContinue = ctx.req.httpVersion === '1.1' && expect !== undefined;
  if (mayContinue && /\b100-continue\b/i.test(expect)) ctx.res.writeContinue();
  const length = ctx.request.length ?? null;
  try {
    return await getRawBody(ctx.req, { limit: LIMITS.http.bodyBytes, length });
  } catch (error) {
    if ((error as { type?: string }).type === 'entity.too.large') throw tooLarge(error);
    throw new TurnlogError('invalid_json', 'The body ended before it was complete.', {
      cause: error,
    });
  }
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** By byte, whether it is `,` `[` or `{`: there are as many as values, or more. */
const COUNTED = new Uint8Array(256);
for (const separator of Buffer.from(',[{')) COUNTED[separator] = 1;

/**
 * Counts before anything is made of the bytes: to parse a million brackets, or to check a hundred
 * thousand unknown fields, would keep everybody else waiting.
 */
function hasTooManyValues(bytes: Buffer): boolean {
  if (bytes.length <= LIMITS.http.bodyValues) return false;
  let values = 0;
  let inString = false;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at]!;
    if (byte === QUOTE) inString = !inString;
    else if (inString) at += byte === BACKSLASH ? 1 : 0;
    else if ((values += COUNTED[byte]!) > LIMITS.http.bodyValues) return true;
  }
  return false;
}

function requireJson(ctx: Context): void {
  const { type, charset } = ctx.request;
  // Node takes the first of several declarations; what stands before it may take another.
  const declarations = ctx.req.headersDistinct['content-type']?.length;
  if (type.toLowerCase() !== 'application/json' || declarations !== 1)
    throw new TurnlogError(
      'unsupported_media_type',
      'The body must be declared once, as Content-Type: application/json.',
    );
  if (charset !== '' && charset.toLowerCase() !== 'utf-8')
    throw new TurnlogError('unsupported_media_type', 'The body must be in UTF-8.');
  const encoding = ctx.get('content-encoding').toLowerCase();
  const transfer = ctx.get('transfer-encoding').toLowerCase();
  if (!['', 'identity'].includes(encoding) || !['', 'chunked'].includes(transfer))
    throw new TurnlogError('unsupported_media_type', 'The body must not be compressed.');
}
