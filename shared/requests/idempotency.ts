import { request, type RequestCommand } from './decider.ts';
import type { RequestBegunData, Reserved } from './events.ts';
import { hasWork, runExclusiveFairly } from '../lib/concurrency/keyedMutex.ts';
import { TurnlogError } from '../lib/errors/turnlogError.ts';
import { requestStream } from '../eventlog/streams.ts';
import type { Actor, CommandContext } from '../commandHandling/context.ts';
import { authorOf } from '../commandHandling/prepareEvents.ts';
import { handleLoaded, type HandleContext } from '../commandHandling/handle.ts';
import { wholeStreamTarget } from '../commandHandling/targetStream.ts';
import { wordsKeyId } from '../search/wordTokens.ts';
import { createHmac } from 'node:crypto';
import { canonicalJson } from '../eventlog/canonicalJson.ts';

/** A request with an `Idempotency-Key`. */
interface IdempotentRequest {
  key: string;
  account_id: string;
  method: string;
  /** The requested path, so that the same key can be used for another agent. */
  path: string;
}

const hmacOf = (key: string, purpose: 'request' | 'content', value: unknown): string =>
  createHmac('sha256', key).update(`${purpose}\n`).update(canonicalJson(value)).digest('hex');

/** The id of the request's stream, derived from account, method, path and key. */
export const idempotentRequestId = ({ key, account_id, method, path }: IdempotentRequest): string =>
  hmacOf(key, 'request', [account_id, method, path]);

/** Detects different content under the same key. Never stored: a weak key would confirm guesses. */
export const contentHmac = ({ key }: IdempotentRequest, content: object): string =>
  hmacOf(key, 'content', content);

/**
 * A claimed request. Every attempt uses the ids that the first attempt reserved, so that the log
 * accepts only one of any number of attempts, on any replica.
 */
export interface Claim<Prepared = unknown> {
  /** The id of the request's stream. */
  request_id: string;
  reserved: Reserved;
  /** True if there was no earlier attempt, so that there is no result to look for. */
  isFirstAttempt: boolean;
  /** Prepared by the first attempt for its operation; undefined in later attempts. */
  prepared?: Prepared;
}

/** Reserved by the first attempt for later ones, and prepared for its own use. */
interface Reservation<Prepared> {
  reserved: Reserved;
  prepared?: Prepared;
}

interface ClaimOptions<Prepared> extends Pick<RequestBegunData, 'operation'> {
  request_id: string;
  content_hmac: string;
  /**
   * Called in a first attempt. If it throws, nothing is recorded and the request fails with its
   * error.
   */
  reserve: () => Promise<Reservation<Prepared>>;
  waiting: WaitingAttempt;
}

/** Bounds the attempts that wait for an earlier one of the same request. */
export interface WaitingAttempt {
  /** Called before the wait. Throws `rate_limited` or `overloaded` where too many wait. */
  acquire: () => Disposable;
  /** Called after the wait. Throws for a client that is gone. */
  requireClient: () => void;
}

/** The error for a key that was used with another body or query. */
export const idempotencyConflictError = (): TurnlogError =>
  new TurnlogError(
    'idempotency_conflict',
    'The Idempotency-Key was sent with another request before. Another request needs another key.',
  );

/** The error for an attempt that waits too long for the first one. */
export const idempotencyInProgressError = (): TurnlogError =>
  new TurnlogError(
    'idempotency_in_progress',
    'The first request with this Idempotency-Key still runs. Send it again for its answer.',
    { retriable: true, retryAfterSeconds: 1 },
  );

/**
 * The recorded HMAC of the content. It is keyed with a secret of the account outside the log, which
 * the erasure of the account destroys, because clients may choose keys that can be guessed. Throws
 * `unauthorized` for an erased account, `store_unavailable`, `key_missing`.
 */
async function keyedHmac(
  { store }: Pick<HandleContext, 'store'>,
  { account_id }: Actor,
  content_hmac: string,
): Promise<string> {
  const secret = await store.keys.ensureKey(wordsKeyId(account_id));
  if (!secret) throw new TurnlogError('unauthorized', 'The account was erased.');
  return createHmac('sha256', Buffer.from(secret.secret, 'base64url'))
    .update(`request\n${content_hmac}`)
    .digest('hex');
}

async function claimInTurn<Prepared>(
  context: HandleContext,
  actor: Actor,
  { request_id, reserve, operation, content_hmac }: ClaimOptions<Prepared>,
): Promise<Claim<Prepared>> {
  const target = wholeStreamTarget(requestStream(request_id), request);
  const preloaded = await target.load(context);
  const { reserved, prepared }: Reservation<Prepared> =
    preloaded.state.status === 'none' ? await reserve() : preloaded.state;
  const body_hmac = await keyedHmac(context, actor, content_hmac);
  const begun = { operation, body_hmac, reserved };
  const command: RequestCommand = { type: 'begin_request', begun, content_hmac };
  const authored = { author: authorOf(actor), command };
  const { loaded, appended } = await handleLoaded(
    context,
    { ...target, preloaded },
    () => authored,
  );
  if (appended)
    return {
      request_id,
      reserved,
      isFirstAttempt: true,
      ...(prepared !== undefined && { prepared }),
    };
  const { state } = loaded;
  return {
    request_id,
    reserved: state.status === 'none' ? reserved : state.reserved,
    isFirstAttempt: false,
  };
}

/**
 * Claims a request. The first event of its stream decides which attempt reserves the ids; attempts in one
 * process wait for each other, because `reserve` may take long. Throws Rejection (`request_differs`),
 * errors of `reserve` and `waiting`, `unauthorized` for an erased account, `key_missing`, and errors of
 * handleLoaded.
 */
export async function claimRequest<Prepared>(
  context: HandleContext,
  actor: Actor,
  options: ClaimOptions<Prepared>,
): Promise<Claim<Prepared>> {
  const { waiting, request_id } = options;
  const lock = {
    owner: context.store,
    key: requestStream(request_id),
    account_id: actor.account_id,
  };
  using permit = hasWork(lock.owner, lock.key) ? waiting.acquire() : undefined;
  return await runExclusiveFairly(lock, async () => {
    if (permit) waiting.requireClient();
    return claimInTurn(context, actor, options);
  });
}

/** Creates something under an id that the first attempt of a request reserved. */
interface Creation<Created> {
  /** The result of an earlier attempt, if any. */
  findExisting: () => Promise<Created | undefined>;
  create: () => Promise<Created>;
}

/**
 * Creates the result in one attempt of a claimed request, and returns it to every attempt. Throws
 * the errors of `findExisting` and `create`.
 */
export async function createOnce<Created>(
  { onIdempotentReplay }: Pick<CommandContext, 'onIdempotentReplay'>,
  claim: Claim | undefined,
  { findExisting, create }: Creation<Created>,
): Promise<Created> {
  const findAgain = async (): Promise<Created | undefined> => {
    const created = await findExisting();
    if (created) onIdempotentReplay?.();
    return created;
  };
  const created = claim?.isFirstAttempt === false ? await findAgain() : undefined;
  if (created) return created;
  try {
    return await create();
  } catch (error) {
    // This attempt may have failed because a concurrent attempt created the result.
    const concurrent = claim && (await findAgain().catch(() => undefined));
    if (concurrent) return concurrent;
    throw error;
  }
}
