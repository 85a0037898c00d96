/**
 * The broadcast port: short, ephemeral messages between processes that share their stores. Messages
 * may be lost; receivers must have another source. Every adapter passes
 * test/contracts/broadcast.ts.
 */

/** The format of member names. */
export const MEMBER_NAME = /^[0-9a-z-]{1,40}$/;

/** Addresses all members, including the sender. */
export const ALL_MEMBERS = 'all';

/** The most UTF-8 bytes of one message. */
export const MESSAGE_BYTES = 7_900;

export interface Broadcast {
  /** The name under which this process receives messages. */
  readonly name: string;
  /**
   * Sends to a member or to all, immediately or never. Returns false for messages dropped because
   * too many are queued or there is no connection. A message that is too long is the caller's
   * error.
   */
  send(to: string, message: string): boolean;
  /**
   * Receives messages; returns a function that stops. `missed` is called whenever the connection is
   * established: earlier messages may have been lost.
   */
  listen(onMessage: (message: string) => void, onMissed?: () => void): () => void;
  /** Whether messages get through at present, as far as is known. */
  connected(): boolean;
  close(): Promise<void>;
}
