import { request, type RequestCommand } from './decider.ts';
import type { RequestBegunData, Reserved } from './events.ts';
import { TurnlogError } from '../lib/errors/turnlogError.ts';
import { requestStream } from '../eventlog/streams.ts';
import type { Actor, CommandContext } from '../commandHandling/context.ts';
import { authorOf } from '../commandHandling/prepareEvents.ts';
import { handleLoaded, type HandleContext } from '../commandHandling/handle.ts';
import { wholeStreamTarget } from '../commandHandling/targetStream.ts';
import { createHmac } from 'node:crypto';
import { canonicalJson } from '../eventlog/canonicalJson.ts';

/** A request with an `Idempotency-Key`, as the API has it. */
interface IdempotentRequest {
  key: string;
  account_id: string;
  method: string;
  /** As served, so that one agent's requests are not another's. */
  path: string;
}

const hmacOf = (key: string, purpose: 'request' | 'content', value: unknown): string =>
  createHmac('sha256', key).update(`${purpose}\n`).update(canonicalJson(value)).digest('hex');

/** The id of the request's stream: of one account, one operation on one thing, and one key. */
export const idempotentRequestId = ({ key, account_id, method, path }: IdempotentRequest): string =>
  hmacOf(key, 'request', [account_id, method, path]);

/** What tells whether another content came with the same key. */
export const contentHmac = ({ key }: IdempotentRequest, content: object): string =>
  hmacOf(key, 'content', content);

/**
 * What a request with an `Idempotency-Key` works with: what it makes has the ids of the first try,
 * so that of any number of tries, here or elsewhere, the log takes one.
 */
export interface Claim<Prepared = unknown> {
  /** The id of the request's stream. */
  request_id: string;
  reserved: Reserved;
  /** True if no earlier attempt exists: there is nothing to look for. */
  isFirstAttempt: boolean;
  /** What the first attempt prepared for its operation; undefined in later attempts. */
  prepared?: Prepared;
}

/** What the first attempt of a request fixes for later ones, and what it prepared for itself. */
export interface Reservation<Prepared> {
  reserved: Reserved;
  prepared?: Prepared;
}

interface ClaimOptions<Prepared> extends Omit<RequestBegunData, 'reserved'> {
  request_id: string;
  /** Called in a first attempt. What it throws is answered, and nothing is recorded. */
  reserve: () => Promise<Reservation<Prepared>>;
}

/** The answer to a key that stands for another body or query. */
export const idempotencyConflict = (): TurnlogError =>
  new TurnlogError(
    'idempotency_conflict',
    'The Idempotency-Key was sent with another request before. Another request needs another key.',
  );

/** The answer to who waits for the first request for too long. */
export const idempotencyInProgress = (): TurnlogError =>
  new TurnlogError(
    'idempotency_in_progress',
    'The first request with this Idempotency-Key still runs. Send it again for its answer.',
    { retriable: true, retryAfterSeconds: 1 },
  );

/**
 * Claims a request: the first event of its stream decides among all tries what it makes.
 * Errors: Rejection (`request_differs`), what `reserve` throws, and those of handleFound.
 */
export async function claimRequest<Prepared>(
  context: HandleContext,
  actor: Actor,
  { request_id, reserve, ...content }: ClaimOptions<Prepared>,
): Promise<Claim<Prepared>> {
  const target = wholeStreamTarget(requestStream(request_id), request);
  const preloaded = await target.load(context);
  const { reserved, prepared }: Reservation<Prepared> =
    preloaded.state.status === 'none' ? await reserve() : preloaded.state;
  const command: RequestCommand = { type: 'begin_request', begun: { ...content, reserved } };
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

/** How something is created under an id that the first try of a request has reserved. */
interface Creation<Created> {
  /** What an earlier try created; undefined where none did. */
  findExisting: () => Promise<Created | undefined>;
  create: () => Promise<Created>;
}

/**
 * Of the tries of one claimed request one creates it, and each is given what was created. Errors:
 * those of the two.
 */
export async function createOnce<Created>(
  { onIdempotentReplay }: Pick<CommandContext, 'onIdempotentReplay'>,
  claim: Claim | undefined,
  { findExisting, create }: Creation<Created>,
): Promise<Created> {
  const again = async (): Promise<Created | undefined> => {
    const created = await findExisting();
    if (created) onIdempotentReplay?.();
    return created;
  };
  const created = claim?.isFirstAttempt === false ? await again() : undefined;
  if (created) return created;
  try {
    return await create();
  } catch (error) {
    // Another try at the same time may have created it, and so be why this one is refused.
    const another = claim && (await again().catch(() => undefined));
    if (another) return another;
    throw error;
  }
}
