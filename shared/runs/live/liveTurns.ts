import type { ToolCalledData } from '../../sessions/events.ts';
import {
  type TurnPart,
  type TurnOutputPosition,
  nextTextPart,
} from '../../sessions/turns/turnOutputPosition.ts';
import type { RecordedTurnOutcome } from '../../sessions/turns/recordedTurn.ts';
import type { TextKey } from '../../eventlog/encryption/protectedText.ts';
import { runPaced } from '../../lib/concurrency/pacedSteps.ts';
import { LIMITS } from '../../limits.ts';

/** A growing text that any number of readers can read meanwhile. */
interface LiveText {
  add(piece: string): void;
  length(): number;
  /**
   * The next part from a character on, and the length of the text up to its end. Never splits a
   * character.
   */
  next(from: number): { text: string; chars: number } | undefined;
}

/**
 * Pieces are joined up to this size. A list of millions of pieces would take more memory than the
 * text, and reading joined text copies it.
 */
const CHUNK_CHARS = 256;
/** The longest part read at a time. */
const READ_CHARS = 8_192;
/** The most pieces that are joined before their text is copied. */
const JOINED_PIECES = 128;

/** A copy of a text. A joined one keeps 32 bytes for each of its pieces, which may be single characters. */
const copyOf = (text: string): string => Buffer.from(text).toString();

/**
 * Keeps a text in chunks, so that appending and reading cost only the length appended or read.
 * Pieces must not split characters.
 */
function createLiveText(): LiveText {
  const chunks: { start: number; text: string }[] = [];
  let length = 0;

  /** The chunk with the character at `from`. */
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
      if (last && last.text.length + piece.length <= CHUNK_CHARS)
        last.text = copyOf(last.text + piece);
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

/** A turn of an account. */
export interface AccountTurn {
  account_id: string;
  session_id: string;
  turn: number;
}

/** A running turn of this process, as its followers see it. */
export interface LiveTurn extends AccountTurn {
  /** The key of the session's texts. */
  key?: TextKey | undefined;
  /**
   * The next output after a position; undefined while there is no more. Followers at the same
   * position get the same object.
   */
  nextPart(after: TurnOutputPosition): TurnPart | undefined;
  /** Calls back once, at the next change. */
  onChange(callback: () => void): void;
  /** Resolves with the next change. */
  nextChange(): Promise<void>;
  hasEnded(): boolean;
  /** True if the text is buffered. Otherwise, only the record contains it, with a delay. */
  isBuffered(): boolean;
  /**
   * The recorded end of the turn, read once for all followers of its buffered text. Resolves with
   * undefined where it is not recorded yet, or can't be read.
   */
  shareOutcome(
    read: () => Promise<RecordedTurnOutcome | undefined>,
  ): Promise<RecordedTurnOutcome | undefined>;
}

/** Publishes the output of a turn. */
export interface TurnPublisher {
  /**
   * More text of a round, or of its reasoning. Followers get text that arrives within a few
   * milliseconds as one part.
   */
  publishText(round: number, piece: string, kind?: 'reasoning' | 'text'): void;
  /** True if the turn has been followed. */
  isFollowed(): boolean;
  /** A recorded tool call. */
  publishToolCall(call: ToolCalledData): void;
  /**
   * Announces the end of the turn, which is recorded or will be as soon as the store is available.
   */
  publishEnd(): void;
}

/** The running turns of this process. */
export interface LiveTurns {
  /** Starts a turn. If `buffered`, followers receive its text as it arrives. */
  begin(subject: AccountTurn, buffered: boolean, key?: TextKey): TurnPublisher;
  find(sessionId: string, turn: number): LiveTurn | undefined;
  /** Characters of buffered texts. */
  bufferedChars(): number;
}

interface LiveRound {
  reasoning: LiveText;
  text: LiveText;
  calls: ToolCalledData[];
}

const charsOfCalls = (rounds: readonly LiveRound[]): number =>
  rounds
    .flatMap(({ calls }) => calls)
    .reduce((chars, call) => chars + call.arguments.length + call.result.length, 0);

const keyOf = (sessionId: string, turn: number): string => `${sessionId}/${turn}`;

function nextPartOf(rounds: readonly LiveRound[], after: TurnOutputPosition): TurnPart | undefined {
  for (let round = after.round; round <= rounds.length; round += 1) {
    const { reasoning, text, calls } = rounds[round - 1]!;
    const start: TurnOutputPosition = round === after.round ? after : { round, chars: 0, calls: 0 };
    const reasoned =
      start.calls === 0 && start.chars === 0 ? reasoning.next(start.reasoning ?? 0) : undefined;
    if (reasoned) {
      const position = { round, reasoning: reasoned.chars, chars: 0, calls: 0 };
      return { type: 'reasoning', text: reasoned.text, position };
    }
    const part = start.calls === 0 ? text.next(start.chars) : undefined;
    if (part)
      return { type: 'text', text: part.text, position: { round, chars: part.chars, calls: 0 } };
    const call = calls[start.calls];
    const { chars } = start;
    if (call) return { type: 'called', call, position: { round, chars, calls: start.calls + 1 } };
  }
  return undefined;
}

/** Followers that one step notifies: each takes some hundredths of a millisecond. */
const NOTIFIED_AT_ONCE = 16;

/** Notifies followers in steps, in turn with the work of other accounts. */
function notifyFollowers(
  account_id: string,
  followers: readonly (() => void)[],
  done: () => unknown,
): void {
  let next = 0;
  runPaced(account_id, () => {
    const end = next + NOTIFIED_AT_ONCE;
    while (next < Math.min(end, followers.length)) followers[next++]!();
    const hasMore = next < followers.length;
    if (!hasMore) done();
    return hasMore;
  });
}

/** Whether two positions are the same. */
const isSamePosition = (a: TurnOutputPosition, b: TurnOutputPosition): boolean =>
  a.round === b.round &&
  a.chars === b.chars &&
  a.calls === b.calls &&
  (a.reasoning ?? 0) === (b.reasoning ?? 0);

/**
 * Buffers the output of each turn once, while it runs and for a moment longer. Followers keep their
 * position in it. When an account exceeds its share of the buffer, the text of a turn is dropped,
 * and its followers read the record instead.
 */
export function createLiveTurns({
  maxChars = LIMITS.stream.liveChars,
  lingerMs = LIMITS.stream.lingerMs,
  coalesceMs = LIMITS.stream.coalesceMs,
}: { maxChars?: number; lingerMs?: number; coalesceMs?: number } = {}): LiveTurns {
  const turns = new Map<string, LiveTurn>();
  const bufferedOf = new Map<string, number>();
  let buffered = 0;

  /**
   * True if an account may buffer more characters: at most half of the space that other accounts
   * leave.
   */
  function canBuffer(account_id: string, chars: number): boolean {
    const ofAccount = bufferedOf.get(account_id) ?? 0;
    return ofAccount + chars <= (maxChars - (buffered - ofAccount)) / 2;
  }

  function addBuffered(account_id: string, chars: number): void {
    const ofAccount = (bufferedOf.get(account_id) ?? 0) + chars;
    buffered += chars;
    if (ofAccount > 0) bufferedOf.set(account_id, ofAccount);
    else bufferedOf.delete(account_id);
  }

  function begin(subject: AccountTurn, bufferText: boolean, textKey?: TextKey): TurnPublisher {
    let rounds: LiveRound[] = [];
    let isBuffered = bufferText;
    let ended = false;
    let isFollowed = false;
    let bufferedChars = 0;
    /** Text that followers do not see yet, its round, and what it is. */
    const pending: { round: number; kind: 'reasoning' | 'text'; text: string; pieces: number } = {
      round: 1,
      kind: 'text',
      text: '',
      pieces: 0,
    };
    /** True while followers are being notified of text, and for a moment after that. */
    let isCoalescing = false;
    /** True if text has arrived meanwhile. */
    let hasMore = false;
    let followers: (() => void)[] = [];
    let last: { after: TurnOutputPosition; part: TurnPart } | undefined;
    let outcome: Promise<RecordedTurnOutcome | undefined> | undefined;
    const { account_id } = subject;
    const key = keyOf(subject.session_id, subject.turn);

    const notify = (done: () => unknown = () => undefined): void => {
      const notified = followers;
      followers = [];
      notifyFollowers(account_id, notified, done);
    };
    const tryBuffer = (chars: number): boolean => {
      if (!isBuffered || !canBuffer(account_id, chars)) return false;
      addBuffered(account_id, chars);
      bufferedChars += chars;
      return true;
    };
    const dropBuffer = (): void => {
      isBuffered = false;
      rounds = [];
      last = undefined;
      pending.text = '';
      outcome = undefined;
      addBuffered(account_id, -bufferedChars);
      bufferedChars = 0;
      notify();
    };
    const roundOf = (round: number): LiveRound => {
      while (rounds.length < round)
        rounds.push({ reasoning: createLiveText(), text: createLiveText(), calls: [] });
      return rounds[round - 1]!;
    };
    const commitText = (): void => {
      if (pending.text === '') return;
      last = undefined;
      const { round, kind, text, pieces } = pending;
      roundOf(round)[kind].add(pieces > 1 ? copyOf(text) : text);
      pending.text = '';
      pending.pieces = 0;
    };
    /** The more followers there are, the longer text is coalesced: notifying them takes a quarter of the time. */
    const showText = (): void => {
      const startedAt = performance.now();
      isCoalescing = true;
      hasMore = false;
      commitText();
      notify(() => {
        const tookMs = performance.now() - startedAt;
        setTimeout(stopCoalescing, Math.max(coalesceMs, 3 * tookMs));
      });
    };
    const stopCoalescing = (): void => {
      isCoalescing = false;
      if (hasMore) showText();
    };
    const nextPart = (after: TurnOutputPosition): TurnPart | undefined => {
      if (last && isSamePosition(last.after, after)) return last.part;
      const part = nextPartOf(rounds, after);
      last = part && { after, part };
      return part;
    };
    const onChange = (callback: () => void): void => {
      isFollowed = true;
      followers.push(callback);
    };
    async function readOutcome(
      read: () => Promise<RecordedTurnOutcome | undefined>,
    ): Promise<RecordedTurnOutcome | undefined> {
      const recorded = await read().catch(() => undefined);
      const output = recorded && 'result' in recorded ? recorded.result.output : '';
      // The text, its event as JSON, and the bytes that are sent.
      if (!recorded || !tryBuffer(3 * output.length)) outcome = undefined;
      return recorded;
    }
    turns.set(key, {
      ...subject,
      key: textKey,
      nextPart,
      onChange,
      nextChange: () => new Promise(onChange),
      shareOutcome: (read) => (outcome ??= readOutcome(read)),
      hasEnded: () => ended,
      isBuffered: () => isBuffered,
    });

    return {
      isFollowed: () => isFollowed,
      publishText(round, piece, kind = 'text') {
        if (!isBuffered) return;
        if (!tryBuffer(piece.length)) return dropBuffer();
        if (pending.round !== round || pending.kind !== kind) commitText();
        pending.round = round;
        pending.kind = kind;
        pending.text += piece;
        pending.pieces += 1;
        if (pending.pieces === JOINED_PIECES) {
          pending.text = copyOf(pending.text);
          pending.pieces = 1;
        }
        if (pending.text.length >= READ_CHARS) commitText();
        hasMore = true;
        if (!isCoalescing) showText();
      },
      publishToolCall(call) {
        commitText();
        last = undefined;
        if (isBuffered) roundOf(call.round).calls.push(call);
        notify();
      },
      publishEnd() {
        turns.delete(key);
        commitText();
        ended = true;
        // Until now, the run has reserved the memory of its tool calls.
        const chars = charsOfCalls(rounds);
        if (chars > 0 && !tryBuffer(chars)) dropBuffer();
        // Followers that are still behind then read the rest from the record.
        notify(() => isBuffered && setTimeout(dropBuffer, lingerMs).unref());
      },
    };
  }

  return {
    begin,
    find: (sessionId, turn) => turns.get(keyOf(sessionId, turn)),
    bufferedChars: () => buffered,
  };
}
