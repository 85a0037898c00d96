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
   * comes while too many wait is left out.
   */
  send(to: string, message: string): void;
  /** Hears what is sent to this process; returns what ends that. */
  listen(hear: (message: string) => void): () => void;
  close(): Promise<void>;
}
