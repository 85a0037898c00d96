/**
 * The broadcast port: short messages between the processes that share their stores, for what is worth
 * nothing a moment later. A message may get lost, and whoever needs what it said looks elsewhere.
 * Every adapter passes test/contracts/broadcast.ts.
 */

/** A name that a member may have. */
export const MEMBER = /^[0-9a-z-]{1,40}$/;

/** Everybody, the sender among them. */
export const ALL = 'all';

/** Of one message: UTF-8 bytes. */
export const MESSAGE_BYTES = 7_900;

export interface Broadcast {
  /** The name under which this process is sent messages. */
  readonly name: string;
  /**
   * Sends to a member, or to all; at once, or never. What is too long is an error of the caller; what
   * comes while too many wait, or without a connection, is left out: false then.
   */
  send(to: string, message: string): boolean;
  /**
   * Hears what is sent to this process; returns what ends that. `missed` is called each time that the
   * connection is there: what was sent up to then may have been lost.
   */
  listen(hear: (message: string) => void, missed?: () => void): () => void;
  /** Whether messages come through now, as far as is known. */
  connected(): boolean;
  close(): Promise<void>;
}
