import type { TurnOutputPosition } from '../../sessions/turns/turnOutputPosition.ts';
import type { Keyring } from '../../eventlog/encryption/keyring.ts';
import { LIMITS } from '../../limits.ts';
import { ALL, type Broadcast } from '../../ports/broadcast.ts';
import { openText, parseDeltaMessage, type TextMessage } from './deltaMessages.ts';
import {
  createLiveTurns,
  type LiveTurn,
  type TurnPublisher,
  type AccountTurn,
} from './liveTurns.ts';

/** Turns that other processes run, as they are followed here. */
export interface MirroredTurns extends Disposable {
  /**
   * Follows a turn whose rounds before this one are recorded; all who do so in this process share one
   * mirror. It ends when the record has more, when nothing is heard any more, or when the last has
   * left.
   */
  follow(subject: AccountTurn, round: number): { turn: LiveTurn; leave: () => void };
}

interface Mirror {
  turn: LiveTurn;
  publisher: TurnPublisher;
  round: number;
  chars: number;
  followers: number;
  /** One message after the other. */
  last: Promise<void>;
  silence: NodeJS.Timeout;
  /** Says again that it is followed. */
  renewal: NodeJS.Timeout;
}

const keyOf = ({ session_id, turn }: { session_id: string; turn: number }): string =>
  `${session_id}/${turn}`;

/** What is followed of turns elsewhere: asked for while somebody follows, and checked for gaps. */
export function createMirroredTurns({
  broadcast,
  keys,
}: {
  broadcast: Broadcast;
  keys: Pick<Keyring, 'find'>;
}): MirroredTurns {
  const { silentMs, interestMs } = LIMITS.stream;
  const hub = createLiveTurns();
  const mirrors = new Map<string, Mirror>();

  function ask(
    { session_id, turn }: AccountTurn,
    { round, chars }: Omit<TurnOutputPosition, 'calls'>,
  ): void {
    const to = broadcast.name;
    broadcast.send(ALL, JSON.stringify({ is: 'follow', session_id, turn, to, round, chars }));
  }

  function end(mirror: Mirror): void {
    if (mirrors.get(keyOf(mirror.turn)) !== mirror) return;
    mirrors.delete(keyOf(mirror.turn));
    clearTimeout(mirror.silence);
    clearInterval(mirror.renewal);
    mirror.publisher.publishEnd();
  }

  async function hearText(mirror: Mirror, message: TextMessage): Promise<void> {
    if (message.round > mirror.round) return end(mirror);
    if (message.round < mirror.round) return;
    // Something was lost: it is asked for again.
    if (message.chars > mirror.chars) return ask(mirror.turn, mirror);
    const text = await openText(message, keys);
    const more = text?.slice(mirror.chars - message.chars) ?? '';
    if (more === '') return;
    mirror.silence.refresh();
    mirror.chars += more.length;
    mirror.publisher.publishText(mirror.round, more);
  }

  const stop = broadcast.listen((text) => {
    const message = parseDeltaMessage(text);
    if (!message || message.is === 'follow') return;
    const mirror = mirrors.get(keyOf(message));
    if (!mirror) return;
    mirror.last = mirror.last.then(() =>
      message.is === 'text' ? hearText(mirror, message) : end(mirror),
    );
  });

  function begin(subject: AccountTurn, round: number): Mirror {
    const publisher = hub.begin(subject, true);
    const mirror: Mirror = {
      turn: hub.find(subject.session_id, subject.turn)!,
      publisher,
      round,
      chars: 0,
      followers: 0,
      last: Promise.resolve(),
      silence: setTimeout(() => end(mirror), silentMs).unref(),
      renewal: setInterval(() => ask(subject, mirror), interestMs / 3).unref(),
    };
    mirrors.set(keyOf(subject), mirror);
    ask(subject, mirror);
    return mirror;
  }

  return {
    follow(subject, round) {
      const known = mirrors.get(keyOf(subject));
      const isFit = known?.round === round && known.turn.isBuffered();
      if (known && !isFit) end(known);
      const mirror = isFit ? known : begin(subject, round);
      mirror.followers += 1;
      let left = false;
      const leave = (): void => {
        if (left) return;
        left = true;
        mirror.followers -= 1;
        if (mirror.followers === 0) end(mirror);
      };
      return { turn: mirror.turn, leave };
    },
    [Symbol.dispose]() {
      stop();
      for (const mirror of mirrors.values()) end(mirror);
    },
  };
}
