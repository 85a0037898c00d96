import type { TurnOutputPosition } from '../../sessions/turns/turnOutputPosition.ts';
import { LIMITS } from '../../limits.ts';
import { sleepUntilAborted } from '../../lib/time/sleep.ts';
import type { Broadcast } from '../../ports/broadcast.ts';
import { resolvesWithin } from '../../lib/time/resolvesWithin.ts';
import { parseDeltaMessage, sealText, type DeltaMessage } from './deltaMessages.ts';
import type { LiveTurn, LiveTurns } from './liveTurns.ts';

const { senders: MOST, interestMs, batchMs, batchMessages, messageChars } = LIMITS.stream;

/** Sends one turn to one process. */
interface Sender {
  place: TurnOutputPosition;
  /** In milliseconds of `performance.now()`: it is no longer wanted then. */
  until: number;
}

type Follow = Extract<DeltaMessage, { is: 'follow' }>;

/**
 * Sends what the turns of this process put out to the processes that follow them, for as long as
 * they say so again: at once, and then in batches, so that no turn speaks too often. Where there is
 * something that does not fit a message, it only says that it is recorded.
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

  const tell = (to: string, message: DeltaMessage): boolean =>
    broadcast.send(to, JSON.stringify(message));

  /** Sends what there is, as far as a batch goes; false where that only the record has. */
  function sendBatch(turn: LiveTurn, sender: Sender, to: string): boolean {
    for (let sent = 0; sent < batchMessages;) {
      const part = turn.nextPart(sender.place);
      if (!part) return true;
      if (part.type === 'called' || !turn.key) return false;
      const { text, position } = part;
      let chars = position.chars - text.length;
      for (const piece of text.match(PIECES) ?? []) {
        tell(to, sealText(turn, { round: position.round, chars }, piece, turn.key));
        chars += piece.length;
        sent += 1;
      }
      sender.place = position;
    }
    return true;
  }

  async function sendOn(turn: LiveTurn, sender: Sender, to: string): Promise<void> {
    const { session_id, turn: number } = turn;
    while (performance.now() < sender.until && !closing.signal.aborted) {
      const change = turn.nextChange();
      if (turn.isBuffered() && !sendBatch(turn, sender, to)) break;
      if (turn.nextPart(sender.place) === undefined) {
        if (turn.hasEnded()) break;
        await resolvesWithin(change, interestMs, { ref: false });
        // Of a turn whose text is not kept, what has changed is recorded.
        if (!turn.isBuffered()) break;
      }
      await sleepUntilAborted(batchMs, { signal: closing.signal, ref: false });
    }
    if (!closing.signal.aborted) tell(to, { is: 'recorded', session_id, turn: number });
  }

  function follow({ session_id, turn, to, round, chars }: Follow): void {
    const found = live.find(session_id, turn);
    if (!found) return;
    const key = `${to}/${session_id}/${turn}`;
    const place = { round, chars, calls: 0 };
    const until = performance.now() + interestMs;
    const known = senders.get(key);
    if (known) return void Object.assign(known, { place, until });
    if (senders.size >= MOST) return;
    const sender = { place, until };
    senders.set(key, sender);
    void sendOn(found, sender, to).finally(() => senders.delete(key));
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

/** What one message takes; the flag keeps characters whole. */
const PIECES = new RegExp(`[^]{1,${messageChars}}`, 'gu');
