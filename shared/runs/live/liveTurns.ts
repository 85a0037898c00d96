import type { ToolCalledData } from '../../sessions/events.ts';
import {
  type TurnPart,
  type TurnOutputPosition,
  nextTextPart,
} from '../../sessions/turns/turnOutputPosition.ts';
import type { TextKey } from '../../eventlog/encryption/protectedText.ts';
import { LIMITS } from '../../limits.ts';

/** A text that grows, and is read while it does, by any number of readers. */
interface LiveText {
  add(piece: string): void;
  length(): number;
  /** The next part from there on, which parts no character, and how much there is behind it. */
  next(from: number): { text: string; chars: number } | undefined;
}

/**
 * Pieces are put together up to this size: a list of millions would be no smaller than the text, and
 * what was put together is copied when it is read.
 */
const CHUNK_CHARS = 256;
/** What is read at a time, where there is more. */
const READ_CHARS = 8_192;

/**
 * Keeps a text in pieces, so that adding to it costs what is added, and reading on what is read. What
 * is added parts no character.
 */
function createLiveText(): LiveText {
  const chunks: { start: number; text: string }[] = [];
  let length = 0;

  /** The piece that has the character at `from`. */
  function chunkAt(from: number): number {
    let [low, high] = [0, chunks.length - 1];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (chunks[middle]!.start <= from) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  return {
    add(piece) {
      const last = chunks.at(-1);
      if (last && last.text.length + piece.length <= CHUNK_CHARS) last.text += piece;
      else chunks.push({ start: length, text: piece });
      length += piece.length;
    },
    length: () => length,
    next(from) {
      if (from >= length) return undefined;
      const first = chunkAt(from);
      const { start } = chunks[first]!;
      let text = '';
      for (let at = first; at < chunks.length && text.length < READ_CHARS; at += 1)
        text += chunks[at]!.text;
      const part = nextTextPart(text, from - start);
      return { text: part.text, chars: start + part.chars };
    },
  };
}

/** Whose turn it is, and which. */
export interface AccountTurn {
  account_id: string;
  session_id: string;
  turn: number;
}

/** A turn that is run here, as those see it who follow it. */
export interface LiveTurn extends AccountTurn {
  /** The key of its session's texts. */
  key?: TextKey | undefined;
  /** What it has put out next behind a place; undefined while there is no more. */
  nextPart(after: TurnOutputPosition): TurnPart | undefined;
  /** Resolves with the next change. */
  nextChange(): Promise<void>;
  hasEnded(): boolean;
  /** Whether its text is kept here: otherwise only the record has it, as soon as it is there. */
  isBuffered(): boolean;
}

/** What the run tells of its turn. */
export interface TurnPublisher {
  /** The round's text goes on. */
  publishText(round: number, piece: string): void;
  /** A tool was called, and that is recorded. */
  publishToolCall(call: ToolCalledData): void;
  /** The turn has ended, and that is recorded, or will be as soon as the store is back. */
  publishEnd(): void;
}

/** The turns that are run in this process. */
export interface LiveTurns {
  /** A turn has begun; `kept` where its text is to be had as it comes. */
  begin(subject: AccountTurn, kept: boolean, key?: TextKey): TurnPublisher;
  find(sessionId: string, turn: number): LiveTurn | undefined;
  /** Characters of texts that are kept. */
  bufferedChars(): number;
}

interface LiveRound {
  text: LiveText;
  calls: ToolCalledData[];
}

const keyOf = (sessionId: string, turn: number): string => `${sessionId}/${turn}`;

function nextPartOf(rounds: readonly LiveRound[], after: TurnOutputPosition): TurnPart | undefined {
  for (let round = after.round; round <= rounds.length; round += 1) {
    const { text, calls } = rounds[round - 1]!;
    const place = round === after.round ? after : { round, chars: 0, calls: 0 };
    const part = place.calls === 0 ? text.next(place.chars) : undefined;
    if (part)
      return { type: 'text', text: part.text, position: { round, chars: part.chars, calls: 0 } };
    const call = calls[place.calls];
    const { chars } = place;
    if (call) return { type: 'called', call, position: { round, chars, calls: place.calls + 1 } };
  }
  return undefined;
}

/**
 * What turns put out is kept once each, while they run and a moment longer; whoever follows one holds
 * no more than a place in it. Where those of an account have more than its share of what the process
 * keeps, a turn's text is let go, and those who follow it wait for the record.
 */
export function createLiveTurns({
  mostChars = LIMITS.stream.liveChars,
  lingerMs = LIMITS.stream.lingerMs,
}: { mostChars?: number; lingerMs?: number } = {}): LiveTurns {
  const turns = new Map<string, LiveTurn>();
  const heldOf = new Map<string, number>();
  let held = 0;

  /** Whether an account may have so many characters more: half of what the others leave. */
  function hasRoom(account_id: string, chars: number): boolean {
    const own = heldOf.get(account_id) ?? 0;
    return own + chars <= (mostChars - (held - own)) / 2;
  }

  function hold(account_id: string, chars: number): void {
    const own = (heldOf.get(account_id) ?? 0) + chars;
    held += chars;
    if (own > 0) heldOf.set(account_id, own);
    else heldOf.delete(account_id);
  }

  function begin(subject: AccountTurn, kept: boolean, textKey?: TextKey): TurnPublisher {
    let rounds: LiveRound[] = [];
    let isKept = kept;
    let ended = false;
    let own = 0;
    let change: PromiseWithResolvers<void> | undefined;
    const { account_id } = subject;
    const key = keyOf(subject.session_id, subject.turn);

    const tell = (): void => {
      change?.resolve();
      change = undefined;
    };
    const letGo = (): void => {
      isKept = false;
      rounds = [];
      hold(account_id, -own);
      own = 0;
      tell();
    };
    const roundOf = (round: number): LiveRound => {
      while (rounds.length < round) rounds.push({ text: createLiveText(), calls: [] });
      return rounds[round - 1]!;
    };
    turns.set(key, {
      ...subject,
      key: textKey,
      nextPart: (after) => nextPartOf(rounds, after),
      nextChange: () => (change ??= Promise.withResolvers()).promise,
      hasEnded: () => ended,
      isBuffered: () => isKept,
    });

    return {
      publishText(round, piece) {
        if (!isKept) return;
        if (!hasRoom(account_id, piece.length)) return letGo();
        hold(account_id, piece.length);
        own += piece.length;
        roundOf(round).text.add(piece);
        tell();
      },
      publishToolCall(call) {
        if (isKept) roundOf(call.round).calls.push(call);
        tell();
      },
      publishEnd() {
        turns.delete(key);
        ended = true;
        tell();
        // Who is behind by then finds the rest in the record.
        if (isKept) setTimeout(letGo, lingerMs).unref();
      },
    };
  }

  return {
    begin,
    find: (sessionId, turn) => turns.get(keyOf(sessionId, turn)),
    bufferedChars: () => held,
  };
}
