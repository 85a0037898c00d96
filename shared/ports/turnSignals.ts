/**
 * The turn signals port: how one process tells the others that something happened to a session's
 * turn. Every adapter passes test/contracts/turnSignals.ts.
 */

/** Who hears signals. What it hears may be late, repeated or untrue: it looks at the log itself. */
export interface TurnListener {
  /** Somebody says that a turn of the session has ended. */
  onTold(sessionId: string): void;
  /** Signals may have been lost up to now. */
  onMissed(): void;
}

export interface TurnSignals {
  /** Tells the other processes, soon, or never while there is no connection. Never throws. */
  tell(sessionId: string): void;
  /** From now on the listener hears what others tell. To be called once. */
  listen(listener: TurnListener): void;
  /** Whether signals come through now, as far as is known. */
  connected(): boolean;
  close(): Promise<void>;
}
