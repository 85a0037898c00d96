import type { Erasure } from '../domain/schema.ts';
import type { Actor } from '../commandHandling/context.ts';

/** Why a stream is erased. */
export type Grounds = Pick<Erasure, 'reason'> & { note?: string | undefined };

/** Why an erasure was begun, for the process that finishes it. */
interface ErasureReason {
  grounds: Grounds;
  /** The actor that began it; undefined for the system. */
  actor: Actor | undefined;
}

/** As text, for the key store, which keeps it until the erasure is done. */
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
