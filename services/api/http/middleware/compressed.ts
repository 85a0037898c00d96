import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import type { Middleware } from 'koa';
import compress from 'koa-compress';
import { LIMITS } from '../../../../shared/limits.ts';
import type { ResponseMemoryPool } from '../responses/responseMemory.ts';
import { onResponseClosed } from '../connection/clientDisconnect.ts';

const THRESHOLD_BYTES = 1_024;

const GZIP = { level: 3 };
const BROTLI = {
  params: {
    [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT,
    [constants.BROTLI_PARAM_QUALITY]: 4,
    [constants.BROTLI_PARAM_LGWIN]: 18,
  },
};

const koaCompress = compress({
  threshold: THRESHOLD_BYTES,
  gzip: GZIP,
  br: BROTLI,
  zstd: false,
  deflate: false,
});

/** Resolve with undefined without memory to compress: the response is sent uncompressed then. */
const COMPRESSORS = {
  gzip: (bytes: Buffer) => promisify(gzip)(bytes, GZIP).catch(() => undefined),
  br: (bytes: Buffer) => promisify(brotliCompress)(bytes, BROTLI).catch(() => undefined),
};
type Compressed = Partial<Record<keyof typeof COMPRESSORS, Promise<Buffer | undefined>>>;

/** Bodies of many responses, each with its compressed forms. */
const sharedBodies = new WeakMap<object, Compressed>();

/** Lets a body be compressed once, at its first response. */
export function compressOnce(body: Buffer): Buffer {
  sharedBodies.set(body, {});
  return body;
}

/** Compresses responses for clients that accept it, while there is memory for the compressors. */
export const compressResponses =
  (memory: ResponseMemoryPool): Middleware =>
  (ctx, next) =>
    koaCompress(ctx, async () => {
      await next();
      ctx.compress = false;
      if (ctx.method === 'HEAD' || (ctx.length ?? Infinity) < THRESHOLD_BYTES || !ctx.body) return;
      // A compressor would delay events.
      if (ctx.response.is('text/event-stream')) return;
      if (ctx.state['precompressed'] === true) return;
      if (!ctx.get('accept-encoding')) return;
      const accepted = ctx.acceptsEncodings('br', 'gzip', 'identity');
      // A client that accepts neither gets the response uncompressed (RFC 9110 §12.5.3).
      if (accepted !== 'br' && accepted !== 'gzip') return;
      const forms = sharedBodies.get(ctx.body as object);
      if (forms) {
        const compressed = await (forms[accepted] ??= COMPRESSORS[accepted](ctx.body as Buffer));
        if (!compressed) {
          delete forms[accepted];
          return;
        }
        ctx.body = compressed;
        ctx.set('content-encoding', accepted);
        return;
      }
      const account = (ctx.state['account_id'] as string | undefined) ?? '';
      const permit = memory.tryAcquire(account, LIMITS.http.compressorBytes);
      if (!permit) return;
      onResponseClosed(ctx.res, permit.release);
      ctx.compress = true;
    });
