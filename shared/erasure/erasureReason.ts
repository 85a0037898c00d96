import type { Erasure } from '../domain/schema.ts';
import type { Actor } from '../commandHandling/context.ts';

/** Why somebody erases; the keys are found on the way. */
export type Grounds = Pick<Erasure, 'reason'> & { note?: string | undefined };

/** Who goes on with an erasure that somebody else has left, and why it was begun. */
interface ErasureReason {
  grounds: Grounds;
  /** Who began it; undefined where the system did. */
  actor: Actor | undefined;
}

/** The same as text, for the note that the key store keeps until the erasure is done. */
export const serializeErasureReason = (
  { reason, note }: Grounds,
  { account_id, key_id, request_id }: Partial<Actor> = {},
): string => JSON.stringify({ reason, note, account_id, key_id, request_id });

export function parseErasureReason(text: string): ErasureReason {
  const { reason, note, ...actor } = JSON.parse(text) as Grounds & Partial<Actor>;
  return {
    grounds: { reason, note },
    actor: actor.account_id === undefined ? undefined : (actor as Actor),
  };
}
