import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { formatEncryptedText } from '../../../../shared/eventlog/encryption/encryptedText.ts';
import {
  commitText,
  createTextEncrypter,
} from '../../../../shared/eventlog/encryption/protectedText.ts';
import type { EncodedEvent, EventStore } from '../../../../shared/ports/eventStore.ts';
import {
  createRecentTexts,
  withTextsShared,
  type RecentText,
} from '../../../../shared/search/recentTexts.ts';
import { createTurnTokenizer, loadKeysOf } from '../../../../shared/search/turnTokens.ts';
import { GENESIS_HASH } from '../../../../shared/eventlog/hashChain.ts';
import { appendEvents } from '../../../../shared/eventlog/append.ts';
import { commitEventTexts } from '../../../../shared/eventlog/encryption/sealTexts.ts';
import { at, turnCompleted, turnFailed, turnStarted } from '../../../support/builders/events.ts';
import { newEvent } from '../../../support/stores/projections/projector.ts';
import { positionOf } from '../../../support/builders/history.ts';
import { memoryKeys } from '../../../support/fakes/memoryKeys.ts';
import { AUTHORSHIP } from '../../../support/builders/authorship.ts';

const STREAM = 'session-session_1';

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

/** An event that commits to one text per member. */
function eventWith(type: string, texts: Record<string, string>): EncodedEvent {
  const committed = Object.entries(texts).map(([name, text]) => ({ name, ...commitText(text) }));
  const data = Object.fromEntries(committed.map(({ name, sha256 }) => [name, { sha256 }]));
  const key = { id: 'k'.repeat(16), secret: '' };
  return {
    id: 'e',
    type,
    data: JSON.stringify(data),
    metadata: '{}',
    toClose: { texts: committed, key },
  };
}

/** A store whose texts arrive in `sent`. */
function sharingStore(
  append: EventStore['append'] = async () => ({ revision: 0, position: positionOf(1) }),
) {
  const sent: RecentText[] = [];
  let onProgress = (): void => undefined;
  const store = withTextsShared(
    { append },
    {
      sendTexts: (texts) => void sent.push(...texts),
      progress: { subscribe: (listener) => ((onProgress = listener as () => void), () => true) },
    },
  );
  return { store, sent, progress: () => onProgress() };
}

/** A turn with one text, its commitment, and keys that count how many texts needed theirs. */
async function closedTurn(text: string) {
  const { keys } = memoryKeys();
  const { sha256, salt } = commitText(text);
  const box = createTextEncrypter(await keys.issueKey(), STREAM)({ sha256, salt, text });
  const turn = {
    session_id: 'session_1',
    account_id: 'acct_1',
    turn: 1,
    input: formatEncryptedText(box, sha256),
    output: null,
    end_position: positionOf(3),
    revision: 2,
  };
  let found = 0;
  const counting: typeof keys = {
    ...keys,
    find(ids) {
      found += ids.size;
      return keys.find(ids);
    },
  };
  return { turn, sha256, keys: counting, found: () => found };
}

test('the texts that searches find are sent once their events are durable', async () => {
  const { store, sent } = sharingStore();
  await store.append(STREAM, 0, [
    eventWith('session.turn_started.v1', { input: 'question' }),
    eventWith('session.tool_called.v1', { arguments: 'two', result: 'four' }),
    eventWith('session.turn_completed.v1', { output: 'answer', reasoning: 'thought' }),
    eventWith('session.turn_failed.v1', { output: 'x'.repeat(16 * 1_024 + 1) }),
  ]);
  const refusing = sharingStore(async () => {
    throw new Error('refused');
  });
  const refused = refusing.store.append(STREAM, 0, [
    eventWith('session.turn_started.v1', { input: 'never stored' }),
  ]);
  await expect(refused).rejects.toThrow('refused');
  expect(sent).toEqual([]);
  jest.runAllTimers();
  expect(sent.map(([stream, , text]) => [stream, text])).toEqual([
    [STREAM, 'question'],
    [STREAM, 'answer'],
  ]);
  expect(refusing.sent).toEqual([]);
});

test('the texts of events are recognized as appends encode them', async () => {
  const { store, sent } = sharingStore();
  const recorded = [
    turnStarted(1, { input: 'question' }),
    turnCompleted(1, { output: 'answer' }),
    turnFailed(2, { output: 'half an answer' }),
  ];
  const { events } = await commitEventTexts(memoryKeys().keys, undefined, recorded.map(newEvent));
  const head = { revision: 0, hash: GENESIS_HASH };
  const authorship = { ...AUTHORSHIP, recorded_at: at(0) };
  await appendEvents(store, { stream: STREAM, head }, { events, authorship });
  jest.runAllTimers();
  expect(sent.map(([, , text]) => text)).toEqual(['question', 'answer', 'half an answer']);
});

test('no more than a bound is sent until the thread has made progress', async () => {
  const { store, sent, progress } = sharingStore();
  const text = 'x'.repeat(16 * 1_024);
  const append = () =>
    store.append(STREAM, 0, [eventWith('session.turn_started.v1', { input: text })]);
  for (let n = 0; n < 100; n += 1) await append();
  jest.runAllTimers();
  expect(sent.length).toBeLessThan(40);
  const before = sent.length;
  progress();
  await append();
  jest.runAllTimers();
  expect(sent.length).toBe(before + 1);
});

test('empty texts are bounded too', async () => {
  const { store, sent } = sharingStore();
  const started = eventWith('session.turn_started.v1', { input: '' });
  for (let n = 0; n < 40_000; n += 1) await store.append(STREAM, 0, [started]);
  jest.runAllTimers();
  expect(sent.length).toBeLessThan(40_000);
  const recentTexts = createRecentTexts();
  for (let n = 0; n < 150_000; n += 1) recentTexts.add([[STREAM, `${n}`.padStart(64, '0'), '']]);
  expect(recentTexts.has(STREAM, formatEncryptedText('', '0'.repeat(64)))).toBe(false);
});

test('a recent text is indexed without its key, and only once', async () => {
  const { turn, sha256, keys, found } = await closedTurn('a rare word');
  const recentTexts = createRecentTexts();
  const tokens = await createTurnTokenizer(keys)(turn);
  expect(found()).toBe(1);
  recentTexts.add([[STREAM, sha256, 'a rare word']]);
  await loadKeysOf({ ...keys, recentTexts }, [turn]);
  const tokenizer = createTurnTokenizer({ ...keys, recentTexts });
  expect(await tokenizer(turn)).toEqual(tokens);
  expect(found()).toBe(1);
  expect(await tokenizer(turn)).toEqual(tokens);
  expect(found()).toBe(2);
});

test('a text of another stream or commitment is never used', async () => {
  const { turn, sha256, keys, found } = await closedTurn('a rare word');
  const recentTexts = createRecentTexts();
  recentTexts.add([
    ['session-session_2', sha256, 'of another session'],
    [STREAM, commitText('a rare word').sha256, 'of another event'],
  ]);
  expect(await createTurnTokenizer({ ...keys, recentTexts })(turn)).toEqual(
    await createTurnTokenizer(keys)(turn),
  );
  expect(found()).toBe(2);
});

test('the text of an erased session is not indexed', async () => {
  const { turn, sha256, keys } = await closedTurn('a rare word');
  const recentTexts = createRecentTexts();
  recentTexts.add([[STREAM, sha256, 'a rare word']]);
  keys.evict(STREAM, []);
  expect(await createTurnTokenizer({ ...keys, recentTexts })(turn)).toEqual([]);
  recentTexts.add([[STREAM, sha256, 'a rare word']]);
  recentTexts.forget(STREAM);
  expect(recentTexts.has(STREAM, turn.input)).toBe(false);
});

test('texts that are not indexed are dropped after seconds, and when many others come', () => {
  const recentTexts = createRecentTexts();
  const closed = formatEncryptedText('', 'a'.repeat(64));
  const first: RecentText = [STREAM, 'a'.repeat(64), 'first'];
  recentTexts.add([first]);
  jest.advanceTimersByTime(4_000);
  expect(recentTexts.has(STREAM, closed)).toBe(true);
  jest.advanceTimersByTime(7_000);
  expect(recentTexts.has(STREAM, closed)).toBe(false);
  recentTexts.add([first]);
  for (let n = 0; n < 200; n += 1)
    recentTexts.add([[STREAM, `${n}`.padStart(64, '0'), 'x'.repeat(16 * 1_024)]]);
  expect(recentTexts.has(STREAM, closed)).toBe(false);
});
