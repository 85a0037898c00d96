import type { IncomingMessage } from 'node:http';
import type { Context } from 'koa';
import { TurnlogError } from '../../../../shared/lib/errors/turnlogError.ts';
import { BYTES_PER_VALUE, countValues } from '../../../../shared/lib/validation/jsonComplexity.ts';
import { describeJsonError } from '../../../../shared/lib/validation/jsonError.ts';
import { findJsonToken } from '../../../../shared/lib/validation/jsonTokens.ts';
import { LIMITS } from '../../../../shared/limits.ts';
import type { MemoryLedger } from '../../../../shared/lib/memory/ledger.ts';
import { createByteCollector } from '../../../../shared/lib/memory/byteCollector.ts';
import { releaseBuffer } from '../../../../shared/lib/memory/releaseBuffer.ts';
import { resumeTask } from '../../../../shared/lib/concurrency/eventLoopWatchdog.ts';
import { invalidRequestError } from '../errors/validation.ts';
import { admitRequest } from './pacing.ts';
import { countHeaders } from '../requestHeaders.ts';
import { yieldForText } from '../../../../shared/lib/concurrency/yieldToEventLoop.ts';

const utf8 = new TextDecoder('utf-8', { fatal: true });

const tooLarge = (cause?: unknown): TurnlogError =>
  new TurnlogError('payload_too_large', `The body is larger than ${LIMITS.http.bodyBytes} bytes.`, {
    cause,
  });

function tooManyValues(): TurnlogError {
  const message = `"body" must not have more than ${LIMITS.http.bodyValues} values.`;
  return new TurnlogError('invalid_request', `The request body is not valid: ${message}`, {
    details: { body: { message, path: '' } },
  });
}

/** The memory of a body, held until the response. */
interface BodyPermit {
  /** Changes the size. Throws `rate_limited` or `overloaded`. */
  resize(bytes: number): void;
  release(): void;
}

/**
 * Reserves memory for the body before reading it: its declared length, or the maximum. A body in chunks that may be empty needs no media type yet: readJsonBody checks it.
 */
export function admitBody(
  ctx: Context,
  memory: MemoryLedger,
  { account_id, mayBeEmpty }: Pick<BodyAdmission, 'account_id' | 'mayBeEmpty'>,
): BodyPermit {
  if (!mayBeEmpty || ctx.request.length !== undefined) requireJson(ctx);
  const length = ctx.request.length ?? LIMITS.http.bodyBytes;
  if (length > LIMITS.http.bodyBytes) throw tooLarge();
  const reserve = (bytes: number) => memory.reserveNow({ account_id, purpose: 'bodies', bytes });
  let permit = reserve(length);
  return {
    resize(bytes) {
      if (permit.resize(Math.min(bytes, memory.largestRequest('bodies')))) return;
      permit.release();
      permit = reserve(bytes);
    },
    release: () => permit.release(),
  };
}

/** The media types that a method's body may have. A PATCH is a JSON merge patch (RFC 7396). */
export const bodyMediaTypes = (method: string): readonly string[] =>
  method.toUpperCase() === 'PATCH'
    ? ['application/json', 'application/merge-patch+json']
    : ['application/json'];

/** True for a request without a body, or with one that is declared to be empty. */
export const hasNoBody = ({ req }: Context): boolean =>
  req.headers['transfer-encoding'] === undefined &&
  Number(req.headers['content-length'] ?? 0) === 0;

interface BodyAdmission {
  permit: Pick<BodyPermit, 'resize'>;
  account_id: string;
  /** True when no body counts as `{}`. */
  mayBeEmpty?: boolean;
}

/** Reads, parses and checks the request's JSON, and returns what the check returns. */
export async function readJsonBody<Body>(
  ctx: Context,
  { permit, account_id, mayBeEmpty = false }: BodyAdmission,
  check: (json: unknown) => Body,
): Promise<Body> {
  const bytes = await readBytes(ctx);
  resumeTask();
  const { length } = bytes;
  permit.resize(length);
  const waiting = admitRequest(ctx);
  if (waiting) await waiting;
  await yieldForText(account_id, length);
  if (length === 0 && mayBeEmpty) return check({});
  if (length === 0) throw new TurnlogError('invalid_json', 'The body is empty; JSON is expected.');
  if (mayBeEmpty) requireJson(ctx);
  const text = decode(bytes);
  releaseBuffer(bytes);
  const values = countValues(text, LIMITS.http.bodyValues);
  if (values > LIMITS.http.bodyValues) throw tooManyValues();
  // The parsed body is kept while the request waits, for example until its JSON Schema is checked.
  permit.resize(length + BYTES_PER_VALUE * values);
  await yieldForText(account_id, length);
  const json = await parse(text, account_id);
  await yieldForText(account_id, length);
  const body = check(json);
  await yieldForText(account_id, length);
  // After the check, whose messages suit the field better.
  requireKept(text);
  return body;
}

const SURROGATE_ESCAPE = /\\u[dD][89a-fA-F]/;

/** True for a string that is recorded as another one, or not at all. */
const isIllFormed = (token: string): boolean =>
  SURROGATE_ESCAPE.test(token) && !(JSON.parse(token) as string).isWellFormed();

/** True for a number that becomes infinite, which JSON can't express. Others are rounded, as any client expects. */
const isTooLarge = (token: string): boolean => !Number.isFinite(Number(token));

/**
 * Matches every text with such a string or number, and few others: a search for tokens takes tens of
 * milliseconds the first time. Without an exponent of three digits, only long numbers are too large.
 */
const MAY_CHANGE = /\\u[dD][89a-fA-F]|[eE]\+?0*[1-9]\d\d|(?<!\d)\d{200}/;

/** Throws `invalid_request` for lone surrogates and numbers that can't be recorded. */
function requireKept(text: string): void {
  if (!MAY_CHANGE.test(text)) return;
  const offendingToken = findJsonToken(text, (token, kind) =>
    kind === 'number' ? isTooLarge(token) : isIllFormed(token),
  );
  if (!offendingToken) return;
  const { kind, path } = offendingToken;
  const message = {
    name: 'must have names of well-formed Unicode text',
    string: 'must be well-formed Unicode text',
    number: `must be a number between -${Number.MAX_VALUE} and ${Number.MAX_VALUE}`,
  }[kind];
  throw invalidRequestError('body', [{ path, message }]);
}

function decode(bytes: Buffer): string {
  try {
    return utf8.decode(bytes);
  } catch (cause) {
    throw new TurnlogError('invalid_json', 'The body is not UTF-8.', { cause });
  }
}

async function parse(text: string, accountId: string): Promise<unknown> {
  try {
    return JSON.parse(text);
  } catch (cause) {
    await yieldForText(accountId, text.length);
    const where = describeJsonError(text);
    throw new TurnlogError('invalid_json', `The body is not JSON: ${where}.`, { cause });
  }
}

async function readBytes(ctx: Context): Promise<Buffer> {
  const { expect } = ctx.req.headers;
  const mayContinue = ctx.req.httpVersion === '1.1' && expect !== undefined;
  if (mayContinue && /\b100-continue\b/i.test(expect)) ctx.res.writeContinue();
  return collectBody(ctx.req, ctx.request.length ?? LIMITS.http.bodyBytes);
}

/** Collects a body, and frees its large pieces at once. */
async function collectBody(request: IncomingMessage, limit: number): Promise<Buffer> {
  const collector = createByteCollector(limit);
  const ended = Promise.withResolvers<{ cause: unknown } | undefined>();
  // Also called after each `end`: an error made here would cost more than the rest.
  const fail = (cause?: Error): void => ended.resolve({ cause });
  const end = (): void => ended.resolve(undefined);
  function add(piece: Buffer): void {
    if (!collector.add(piece)) ended.reject(tooLarge());
    if (piece.length < limit) releaseBuffer(piece);
  }
  if (request.readable)
    request.on('data', add).once('end', end).once('close', fail).once('error', fail);
  else fail();
  try {
    const failure = await ended.promise;
    if (failure)
      throw new TurnlogError('invalid_json', 'The body ended before it was complete.', failure);
    return collector.take();
  } catch (error) {
    collector.release();
    request.pause();
    throw error;
  } finally {
    request.off('data', add).off('end', end).off('close', fail).off('error', fail);
  }
}

function requireJson(ctx: Context): void {
  const { type } = ctx.request;
  const mediaTypes = bodyMediaTypes(ctx.method);
  const isDeclaredOnce = countHeaders(ctx.req, 'content-type') === 1;
  if (!mediaTypes.includes(type.toLowerCase()) || !isDeclaredOnce) {
    if (ctx.method === 'PATCH') ctx.set('accept-patch', mediaTypes.join(', '));
    throw new TurnlogError(
      'unsupported_media_type',
      `The body must be declared once, as Content-Type: ${mediaTypes.join(' or ')}.`,
    );
  }
  const charset = ctx.get('content-type') === type ? '' : ctx.request.charset;
  if (charset !== '' && charset.toLowerCase() !== 'utf-8')
    throw new TurnlogError('unsupported_media_type', 'The body must be in UTF-8.');
  const encoding = ctx.get('content-encoding').toLowerCase();
  const transfer = ctx.get('transfer-encoding').toLowerCase();
  if (!['', 'identity'].includes(encoding) || !['', 'chunked'].includes(transfer))
    throw new TurnlogError('unsupported_media_type', 'The body must not be compressed.');
}
