import type { Context } from 'koa';
import getRawBody from 'raw-body';
import { TurnlogError } from '../../../shared/errors.ts';
import { LIMITS } from '../../../shared/limits.ts';

const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * Reads the request's JSON. Errors: `unsupported_media_type`, `payload_too_large`, `invalid_json`.
 */
export async function readJsonBody(ctx: Context): Promise<unknown> {
  requireJson(ctx);
  const length = ctx.request.length;
  let bytes: Buffer;
  try {
    bytes = await getRawBody(ctx.req, { limit: LIMITS.http.bodyBytes, length: length ?? null });
  } catch (error) {
    if ((error as { type?: string }).type === 'entity.too.large')
      throw new TurnlogError(
        'payload_too_large',
        `The body is larger than ${LIMITS.http.bodyBytes} bytes.`,
        { cause: error },
      );
    throw new TurnlogError('invalid_json', 'The body ended before it was complete.', {
      cause: error,
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
  const encoding = ctx.get('content-encoding');
  if (encoding !== '' && encoding !== 'identity')
    throw new TurnlogError('unsupported_media_type', 'The body must not be compressed.');
}
