import type { TurnOutputPosition } from '../../sessions/turns/turnOutputPosition.ts';
import { LIMITS } from '../../limits.ts';
import { sleepUntilAborted } from '../../lib/time/sleep.ts';
import type { Broadcast } from '../../ports/broadcast.ts';
import { resolvesWithin } from '../../lib/time/resolvesWithin.ts';
import { parseDeltaMessage, encryptDelta, type DeltaMessage } from './deltaMessages.ts';
import type { LiveTurn, LiveTurns } from './liveTurns.ts';

const { senders: MAX_SENDERS, interestMs, batchMs, batchMessages, messageChars } = LIMITS.stream;

/** Sends the output of one turn to one process. */
interface Sender {
  position: TurnOutputPosition;
  /** When the process stops following the turn, in milliseconds of `performance.now()`. */
  until: number;
}

type Follow = Extract<DeltaMessage, { is: 'follow' }>;

/**
 * Sends the output of this process's turns to processes that follow them, as long as they renew
 * their interest. The first output is sent immediately, later output in batches. Output that does
 * not fit into a message is only announced as recorded.
 */
export function startSendingDeltas({
  broadcast,
  live,
}: {
  broadcast: Broadcast;
  live: Pick<LiveTurns, 'find'>;
}): Disposable {
  const senders = new Map<string, Sender>();
  const closing = new AbortController();

  const send = (to: string, message: DeltaMessage): boolean =>
    broadcast.send(to, JSON.stringify(message));

  /** Sends the next batch; false if the next part is only in the record. */
  function sendBatch(turn: LiveTurn, sender: Sender, to: string): boolean {
    for (let sent = 0; sent < batchMessages;) {
      const part = turn.nextPart(sender.position);
      if (!part) return true;
      if (part.type === 'called' || !turn.key) return false;
      const { type: is, text, position } = part;
      const end = is === 'text' ? position.chars : (position.reasoning ?? 0);
      let chars = end - text.length;
      for (const piece of text.match(PIECES) ?? []) {
        send(to, encryptDelta(turn, { is, round: position.round, chars }, piece, turn.key));
        chars += piece.length;
        sent += 1;
      }
      sender.position = position;
    }
    return true;
  }

  async function sendUpdates(turn: LiveTurn, sender: Sender, to: string): Promise<void> {
    const { session_id, turn: number } = turn;
    while (performance.now() < sender.until && !closing.signal.aborted) {
      const change = turn.nextChange();
      if (turn.isBuffered() && !sendBatch(turn, sender, to)) break;
      if (turn.nextPart(sender.position) === undefined) {
        if (turn.hasEnded()) break;
        await resolvesWithin(change, interestMs, { ref: false });
        // Changes of an unbuffered turn are only in the record.
        if (!turn.isBuffered()) break;
      }
      await sleepUntilAborted(batchMs, { signal: closing.signal, ref: false });
    }
    if (!closing.signal.aborted) send(to, { is: 'recorded', session_id, turn: number });
  }

  function follow({ session_id, turn, to, round, reasoning = 0, chars }: Follow): void {
    const liveTurn = live.find(session_id, turn);
    if (!liveTurn) return;
    const key = `${to}/${session_id}/${turn}`;
    const position = { round, reasoning, chars, calls: 0 };
    const until = performance.now() + interestMs;
    const existing = senders.get(key);
    if (existing) return void Object.assign(existing, { position, until });
    if (senders.size >= MAX_SENDERS) return;
    const sender = { position, until };
    senders.set(key, sender);
    void sendUpdates(liveTurn, sender, to).finally(() => senders.delete(key));
  }

  const end = broadcast.listen((text) => {
    const message = parseDeltaMessage(text);
    if (message?.is === 'follow') follow(message);
  });
  return {
    [Symbol.dispose]() {
      end();
      closing.abort();
    },
  };
}

/** Splits a text into pieces that fit one message. With the `u` flag, no character is split. */
const PIECES = new RegExp(`[^]{1,${messageChars}}`, 'gu');
