import type { TurnOutputPosition } from '../../sessions/turns/turnOutputPosition.ts';
import type { Keyring } from '../../eventlog/encryption/keyring.ts';
import { LIMITS } from '../../limits.ts';
import { ALL_MEMBERS, type Broadcast } from '../../ports/broadcast.ts';
import { decryptDelta, parseDeltaMessage, type TextDelta } from './deltaMessages.ts';
import {
  createLiveTurns,
  type LiveTurn,
  type TurnPublisher,
  type AccountTurn,
} from './liveTurns.ts';

/** Turns of other processes that are followed in this one. */
export interface MirroredTurns extends Disposable {
  /**
   * Follows a turn whose rounds before `round` are recorded. All followers in this process share
   * one mirror. It ends when the record contains more, after a silence, or without followers.
   */
  follow(subject: AccountTurn, round: number): { turn: LiveTurn; leave: () => void };
}

interface Mirror {
  turn: LiveTurn;
  publisher: TurnPublisher;
  round: number;
  reasoning: number;
  chars: number;
  followers: number;
  /** Processes messages one at a time. */
  lastMessage: Promise<void>;
  silence: NodeJS.Timeout;
  /** Timer that renews the interest in the turn. */
  renewal: NodeJS.Timeout;
}

const keyOf = ({ session_id, turn }: { session_id: string; turn: number }): string =>
  `${session_id}/${turn}`;

/**
 * Requests the output of other processes' turns while they are followed here, and requests it again
 * after a gap.
 */
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

  function requestOutput(
    { session_id, turn }: AccountTurn,
    { round, reasoning, chars }: Omit<TurnOutputPosition, 'calls'>,
  ): void {
    const position = { round, reasoning, chars };
    const to = broadcast.name;
    broadcast.send(
      ALL_MEMBERS,
      JSON.stringify({ is: 'follow', session_id, turn, to, ...position }),
    );
  }

  function end(mirror: Mirror): void {
    if (mirrors.get(keyOf(mirror.turn)) !== mirror) return;
    mirrors.delete(keyOf(mirror.turn));
    clearTimeout(mirror.silence);
    clearInterval(mirror.renewal);
    mirror.publisher.publishEnd();
  }

  async function receiveText(mirror: Mirror, message: TextDelta): Promise<void> {
    if (message.round > mirror.round) return end(mirror);
    if (message.round < mirror.round) return;
    const count = message.is === 'text' ? 'chars' : 'reasoning';
    // Messages were lost, so the output is requested again.
    if (message.chars > mirror[count]) return requestOutput(mirror.turn, mirror);
    const text = await decryptDelta(message, keys);
    const more = text?.slice(mirror[count] - message.chars) ?? '';
    if (more === '') return;
    mirror.silence.refresh();
    mirror[count] += more.length;
    mirror.publisher.publishText(mirror.round, more, message.is);
  }

  const stop = broadcast.listen((text) => {
    const message = parseDeltaMessage(text);
    if (!message || message.is === 'follow') return;
    const mirror = mirrors.get(keyOf(message));
    if (!mirror) return;
    mirror.lastMessage = mirror.lastMessage.then(() =>
      message.is === 'recorded' ? end(mirror) : receiveText(mirror, message),
    );
  });

  function begin(subject: AccountTurn, round: number): Mirror {
    const publisher = hub.begin(subject, true);
    const mirror: Mirror = {
      turn: hub.find(subject.session_id, subject.turn)!,
      publisher,
      round,
      reasoning: 0,
      chars: 0,
      followers: 0,
      lastMessage: Promise.resolve(),
      silence: setTimeout(() => end(mirror), silentMs).unref(),
      renewal: setInterval(() => requestOutput(subject, mirror), interestMs / 3).unref(),
    };
    mirrors.set(keyOf(subject), mirror);
    requestOutput(subject, mirror);
    return mirror;
  }

  return {
    follow(subject, round) {
      const existing = mirrors.get(keyOf(subject));
      const isUsable = existing?.round === round && existing.turn.isBuffered();
      if (existing && !isUsable) end(existing);
      const mirror = isUsable ? existing : begin(subject, round);
      mirror.followers += 1;
      let released = false;
      const leave = (): void => {
        if (released) return;
        released = true;
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
