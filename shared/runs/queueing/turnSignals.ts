/** How one process tells the others that something happened to a session's turn. */
import { LIMITS } from '../../limits.ts';
import { ALL, type Broadcast } from '../../ports/broadcast.ts';

/** No other message begins so. */
const PREFIX = 'turn ';
/** What finds too many messages on their way waits so long. */
const RETRY_MS = 50;

/** Who hears signals. What it hears may be late, repeated or untrue: it looks at the log itself. */
export interface TurnListener {
  /** Somebody says that a turn of the session has ended. */
  onTurnEnded(sessionId: string): void;
  /** Signals may have been lost up to now. */
  onSignalsLost(): void;
}

export interface TurnSignals {
  /** Tells the other processes, soon, or never where too many are still to be told. */
  send(sessionId: string): void;
  /** From now on the listener hears what others tell. To be called once. */
  listen(listener: TurnListener): void;
  /** Whether signals come through now, as far as is known. */
  connected(): boolean;
}

/**
 * Signals over a broadcast. What is told while it is not connected waits, up to a bound; what is
 * beyond it, or on its way when the connection breaks, is lost.
 */
export function createTurnSignals(broadcast: Broadcast): TurnSignals {
  /** Sessions that are still to be told, each once. */
  const pending = new Set<string>();
  let again: NodeJS.Timeout | undefined;

  function tellPending(): void {
    clearTimeout(again);
    for (const sessionId of pending) {
      if (!broadcast.send(ALL, `${PREFIX}${sessionId}`)) break;
      pending.delete(sessionId);
    }
    if (pending.size > 0 && broadcast.connected())
      again = setTimeout(tellPending, RETRY_MS).unref();
  }

  return {
    send(sessionId) {
      if (pending.size >= LIMITS.turn.signals) return;
      pending.add(sessionId);
      tellPending();
    },
    listen({ onTurnEnded, onSignalsLost }) {
      const hear = (message: string): void => {
        if (message.startsWith(PREFIX)) onTurnEnded(message.slice(PREFIX.length));
      };
      broadcast.listen(hear, () => {
        onSignalsLost();
        tellPending();
      });
    },
    connected: broadcast.connected,
  };
}
