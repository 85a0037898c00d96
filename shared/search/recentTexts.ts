/**
 * Texts that this process has just appended, passed in plain to the thread that indexes them: it
 * needs neither their keys nor their decryption. A text is identified by its stream and its salted
 * commitment, which the event's hash covers, so it can't be taken for the text of another event.
 */
import { readCommitment } from '../eventlog/encryption/encryptedText.ts';
import type { EncodedEvent, EventStore } from '../ports/eventStore.ts';
import type { ProgressSource } from '../projections/progress.ts';
import { KIB } from '../lib/units.ts';

/** Longer texts are decrypted: passing them costs as much. */
const TEXT_CHARACTERS = 16 * KIB;
/** Characters that are sent without progress of the thread. */
const SENT_CHARACTERS = 512 * KIB;
/** Characters, and milliseconds, after which texts that were not indexed begin to be dropped. */
const HELD_CHARACTERS = 1_024 * KIB;
const HELD_MS = 5_000;
/** Counted for each text beside its characters: an empty one takes memory too. */
const ENTRY_CHARACTERS = 16;
/** Texts are sent together after this pause, which is shorter than the one before indexing. */
const GATHER_MS = 100;

/** The start of an indexed text in the data of an event that only commits to it. */
const INDEXED = new Map([
  ['session.turn_started.v1', '"input":{"sha256":"'],
  ['session.turn_completed.v1', '"output":{"sha256":"'],
  ['session.turn_failed.v1', '"output":{"sha256":"'],
]);

/** A text that was appended. An array, because a message with objects costs twice as much. */
export type RecentText = readonly [stream: string, sha256: string, text: string];

function* indexedTexts(
  stream: string,
  events: readonly Pick<EncodedEvent, 'type' | 'data' | 'toClose'>[],
): Generator<RecentText> {
  for (const { type, data, toClose } of events) {
    const start = INDEXED.get(type);
    if (start === undefined || !toClose) continue;
    for (const { sha256, text } of toClose.texts)
      if (text.length <= TEXT_CHARACTERS && data.includes(start + sha256))
        yield [stream, sha256, text];
  }
}

/** The thread that indexes texts. */
interface Receiver {
  sendTexts: (texts: readonly RecentText[]) => void;
  progress: Pick<ProgressSource, 'subscribe'>;
}

/**
 * Wraps a store so that texts to index are sent once they are durable. After SENT_CHARACTERS, drops
 * texts until the thread makes progress.
 */
export function withTextsShared<Store extends Pick<EventStore, 'append'>>(
  store: Store,
  { sendTexts, progress }: Receiver,
): Store {
  let texts: RecentText[] = [];
  let characters = 0;
  progress.subscribe(() => {
    characters = 0;
  });
  function flush(): void {
    sendTexts(texts);
    texts = [];
  }
  return {
    ...store,
    async append(...[stream, expected, events]: Parameters<EventStore['append']>) {
      const result = await store.append(stream, expected, events);
      for (const recent of indexedTexts(stream, events)) {
        if (characters > SENT_CHARACTERS) break;
        if (texts.length === 0) setTimeout(flush, GATHER_MS).unref();
        characters += ENTRY_CHARACTERS + recent[2].length;
        texts.push(recent);
      }
      return result;
    },
  };
}

/** The texts that have arrived and are not indexed yet. */
export interface RecentTexts {
  add(texts: readonly RecentText[]): void;
  /** Returns and removes the plain text of an encrypted text of a row; undefined if unknown. */
  take(stream: string, closed: string): string | undefined;
  has(stream: string, closed: string): boolean;
  /** Removes the texts of a stream that was erased. */
  forget(stream: string): void;
}

/** Holds recent texts within a bound and for seconds only. */
export function createRecentTexts(): RecentTexts {
  let fresh = new Map<string, RecentText>();
  let aging = fresh;
  let characters = 0;
  let timer: NodeJS.Timeout | undefined;

  function dropOldest(): void {
    clearTimeout(timer);
    aging = fresh;
    fresh = new Map();
    characters = 0;
    timer = aging.size > 0 ? setTimeout(dropOldest, HELD_MS).unref() : undefined;
  }
  function find(stream: string, closed: string): RecentText | undefined {
    const sha256 = readCommitment(closed);
    const entry = fresh.get(sha256) ?? aging.get(sha256);
    return entry?.[0] === stream ? entry : undefined;
  }
  function remove(sha256: string): void {
    fresh.delete(sha256);
    aging.delete(sha256);
  }
  return {
    add(texts) {
      for (const recent of texts) {
        fresh.set(recent[1], recent);
        characters += ENTRY_CHARACTERS + recent[2].length;
        if (characters > HELD_CHARACTERS) dropOldest();
      }
      timer ??= setTimeout(dropOldest, HELD_MS).unref();
    },
    has: (stream, closed) => find(stream, closed) !== undefined,
    take(stream, closed) {
      const text = find(stream, closed);
      if (text) remove(text[1]);
      return text?.[2];
    },
    forget(stream) {
      for (const [of, sha256] of [...fresh.values(), ...aging.values()])
        if (of === stream) remove(sha256);
    },
  };
}
