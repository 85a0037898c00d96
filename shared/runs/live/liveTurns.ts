import type { ToolCalledData } from '../../sessions/events.ts';
import type { TurnPart, TurnPlace } from '../../sessions/turns/turnOutputPosition.ts';
import type { TextKey } from '../../eventlog/encryption/protectedText.ts';
import { LIMITS } from '../../limits.ts';
import { createLiveText, type LiveText } from './liveText.ts';

/** Whose turn it is, and which. */
export interface TurnSubject {
  account_id: string;
  session_id: string;
  turn: number;
}

/** A turn that is run here, as those see it who follow it. */
export interface LiveTurn extends TurnSubject {
  /** The key of its session's texts. */
  key?: TextKey | undefined;
  /** What it has put out next behind a place; undefined while there is no more. */
  next(after: TurnPlace): TurnPart | undefined;
  /** Resolves with the next change. */
  changed(): Promise<void>;
  hasEnded(): boolean;
  /** Whether its text is kept here: otherwise only the record has it, as soon as it is there. */
  isKept(): boolean;
}

/** What the run tells of its turn. */
export interface TurnPublisher {
  /** The round's text goes on. */
  text(round: number, piece: string): void;
  /** A tool was called, and that is recorded. */
  called(call: ToolCalledData): void;
  /** The turn has ended, and that is recorded, or will be as soon as the store is back. */
  end(): void;
}

/** The turns that are run in this process. */
export interface LiveTurns {
  /** A turn has begun; `kept` where its text is to be had as it comes. */
  begin(subject: TurnSubject, kept: boolean, key?: TextKey): TurnPublisher;
  find(sessionId: string, turn: number): LiveTurn | undefined;
  /** Characters of texts that are kept. */
  chars(): number;
}

interface LiveRound {
  text: LiveText;
  calls: ToolCalledData[];
}

const keyOf = (sessionId: string, turn: number): string => `${sessionId}/${turn}`;

function nextIn(rounds: readonly LiveRound[], after: TurnPlace): TurnPart | undefined {
  for (let round = after.round; round <= rounds.length; round += 1) {
    const { text, calls } = rounds[round - 1]!;
    const place = round === after.round ? after : { round, chars: 0, calls: 0 };
    const part = place.calls === 0 ? text.next(place.chars) : undefined;
    if (part)
      return { type: 'text', text: part.text, place: { round, chars: part.chars, calls: 0 } };
    const call = calls[place.calls];
    const { chars } = place;
    if (call) return { type: 'called', call, place: { round, chars, calls: place.calls + 1 } };
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

  function begin(subject: TurnSubject, kept: boolean, textKey?: TextKey): TurnPublisher {
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
      next: (after) => nextIn(rounds, after),
      changed: () => (change ??= Promise.withResolvers()).promise,
      hasEnded: () => ended,
      isKept: () => isKept,
    });

    return {
      text(round, piece) {
        if (!isKept) return;
        if (!hasRoom(account_id, piece.length)) return letGo();
        hold(account_id, piece.length);
        own += piece.length;
        roundOf(round).text.add(piece);
        tell();
      },
      called(call) {
        if (isKept) roundOf(call.round).calls.push(call);
        tell();
      },
      end() {
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
    chars: () => held,
  };
}
