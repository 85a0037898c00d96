import { request, type RequestCommand } from './decider.ts';
import type { RequestBegunData, Reserved } from './events.ts';
import { TurnlogError } from '../lib/errors/turnlogError.ts';
import { requestStream } from '../eventlog/streams.ts';
import type { Actor } from '../commandHandling/context.ts';
import { authorOf } from '../commandHandling/recordEvents.ts';
import { handleFound, type HandleContext } from '../commandHandling/handle.ts';
import { shortStream } from '../commandHandling/targetStream.ts';

/**
 * What a request with an `Idempotency-Key` works with: what it makes has the ids of the first try,
 * so that of any number of tries, here or elsewhere, the log takes one.
 */
export interface Claim {
  /** The id of the request's stream. */
  request_id: string;
  reserved: Reserved;
  /** True where nobody has tried before: there is nothing to look for. */
  first: boolean;
}

/** What is known of a request before it is claimed. */
export interface Claimed extends Omit<RequestBegunData, 'reserved'> {
  request_id: string;
  /** Asked once, by the first: what it throws is answered, and nothing is recorded. */
  reserve: () => Promise<Reserved>;
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
export async function claimRequest(
  context: HandleContext,
  actor: Actor,
  { request_id, reserve, ...content }: Claimed,
): Promise<Claim> {
  const target = shortStream(requestStream(request_id), request);
  const known = await target.load(context);
  const reserved = known.state.status === 'none' ? await reserve() : known.state.reserved;
  const command: RequestCommand = { type: 'begin_request', begun: { ...content, reserved } };
  const order = { author: authorOf(actor), command };
  const { found, appended } = await handleFound(context, { ...target, known }, () => order);
  const { state } = found;
  return {
    request_id,
    reserved: state.status === 'none' ? reserved : state.reserved,
    first: appended !== undefined,
  };
}
