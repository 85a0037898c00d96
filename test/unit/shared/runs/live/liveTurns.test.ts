import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, jest, test } from '@jest/globals';
import { runPaced } from '../../../../../shared/lib/concurrency/pacedSteps.ts';
import { createLiveTurns } from '../../../../../shared/runs/live/liveTurns.ts';
import { toolCallData } from '../../../../support/builders/events.ts';
import { START_OF_OUTPUT } from '../../../../../shared/sessions/turns/turnOutputPosition.ts';

const subject = { account_id: 'a', session_id: 's', turn: 1 };

test('a turn that has more text than there is room for lets go of it, and of its room', async () => {
  const live = createLiveTurns({ maxChars: 200 });
  const publisher = live.begin(subject, true);
  const turn = live.find('s', 1)!;
  publisher.publishText(1, 'x'.repeat(60));
  expect([turn.isBuffered(), live.bufferedChars()]).toEqual([true, 60]);
  const change = turn.nextChange();
  publisher.publishText(1, 'x'.repeat(60));
  await change;
  expect([turn.isBuffered(), live.bufferedChars(), turn.nextPart(START_OF_OUTPUT)]).toEqual([
    false,
    0,
    undefined,
  ]);
  publisher.publishText(1, 'more');
  expect(live.bufferedChars()).toBe(0);
});

const TURNS = 20;
const ROUNDS = 8;

test.each([
  ['more than is read at a time', 20_000],
  ['less than is kept together', 200],
])('text of single characters takes a few bytes of memory for each, %s', async (_, chars) => {
  setFlagsFromString('--expose_gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  const heap = (): number => {
    collectGarbage();
    return process.memoryUsage().heapUsed;
  };
  const live = createLiveTurns();
  const before = heap();
  for (let turn = 1; turn <= TURNS; turn += 1) {
    const publisher = live.begin({ ...subject, turn }, true);
    for (let round = 1; round <= ROUNDS; round += 1)
      for (let at = 0; at < chars; at += 1) publisher.publishText(round, 'ж', 'reasoning');
  }
  await sleep(100);
  const perTurn = 10_000;
  expect(heap() - before).toBeLessThan(3 * live.bufferedChars() + TURNS * perTurn);
  expect(live.bufferedChars()).toBe(TURNS * ROUNDS * chars);
  expect(live.find('s', 1)!.nextPart(START_OF_OUTPUT)).toMatchObject({
    text: 'ж'.repeat(Math.min(chars, 8_192)),
  });
});

test('an account that has all it can get leaves others room', () => {
  const live = createLiveTurns({ maxChars: 400 });
  const begin = (account_id: string, turn: number) => {
    const publisher = live.begin({ account_id, session_id: account_id, turn }, true);
    publisher.publishText(1, 'x'.repeat(60));
    return live.find(account_id, turn)!.isBuffered();
  };
  expect([1, 2, 3, 4, 5].map((turn) => begin('a', turn))).toEqual([true, true, true, false, false]);
  expect(begin('b', 1)).toBe(true);
  expect(live.bufferedChars()).toBe(240);
});

test('the text of a turn that has ended is kept a moment longer, and found no more', async () => {
  const live = createLiveTurns({ lingerMs: 20 });
  const publisher = live.begin(subject, true);
  const turn = live.find('s', 1)!;
  publisher.publishText(1, 'all');
  publisher.publishEnd();
  expect([live.find('s', 1), turn.hasEnded()]).toEqual([undefined, true]);
  expect(turn.nextPart(START_OF_OUTPUT)).toMatchObject({ text: 'all' });
  await sleep(60);
  expect([turn.isBuffered(), live.bufferedChars()]).toEqual([false, 0]);
});

test.each([
  ['are buffered a moment longer', 1_000, true],
  ['are dropped when they take too much', 100, false],
])('the tool calls of a turn that has ended %s', (_, maxChars, isBuffered) => {
  const live = createLiveTurns({ maxChars });
  const publisher = live.begin(subject, true);
  const turn = live.find('s', 1)!;
  publisher.publishText(1, 'all');
  const call = toolCallData(1, { arguments: '{}', result: 'x'.repeat(60) });
  publisher.publishToolCall(call);
  expect([turn.isBuffered(), live.bufferedChars()]).toEqual([true, 3]);
  publisher.publishEnd();
  expect([turn.isBuffered(), live.bufferedChars()]).toEqual([isBuffered, isBuffered ? 65 : 0]);
});

test('a turn whose text nobody wants keeps none, and tells its changes', async () => {
  const live = createLiveTurns();
  const publisher = live.begin(subject, false);
  const change = live.find('s', 1)!.nextChange();
  publisher.publishText(1, 'text');
  publisher.publishEnd();
  await change;
  expect(live.bufferedChars()).toBe(0);
});

test('shows the first text at once, and what comes soon after it as one part', async () => {
  const live = createLiveTurns();
  const publisher = live.begin(subject, true);
  const turn = live.find('s', 1)!;
  publisher.publishText(1, 'first');
  expect(turn.nextPart(START_OF_OUTPUT)).toMatchObject({ text: 'first' });
  const { position } = turn.nextPart(START_OF_OUTPUT)!;
  const change = turn.nextChange();
  for (let count = 0; count < 1_000; count += 1) publisher.publishText(1, 'x');
  expect(turn.nextPart(position)).toBeUndefined();
  await change;
  expect(turn.nextPart(position)).toMatchObject({ text: 'x'.repeat(1_000) });
});

test('a tool call and the end of a turn come after all text before them, and at once', () => {
  const live = createLiveTurns();
  const publisher = live.begin(subject, true);
  const turn = live.find('s', 1)!;
  publisher.publishText(1, 'a');
  publisher.publishText(1, 'b');
  publisher.publishToolCall(toolCallData(1));
  expect(turn.nextPart(START_OF_OUTPUT)).toMatchObject({ text: 'ab' });
  publisher.publishText(2, 'c');
  publisher.publishEnd();
  expect(turn.nextPart({ round: 2, chars: 0, calls: 0 })).toMatchObject({ text: 'c' });
});

test('followers at one position share a part, and others are served between their steps', async () => {
  const live = createLiveTurns();
  const publisher = live.begin(subject, true);
  const turn = live.find('s', 1)!;
  let notified = 0;
  const changes = Array.from({ length: 1_000 }, () =>
    turn.nextChange().then(() => (notified += 1)),
  );
  publisher.publishText(1, 'text');
  const beforeOther = await new Promise((resolve) =>
    runPaced('other', () => {
      resolve(notified);
      return false;
    }),
  );
  expect(beforeOther).toBeLessThan(1_000);
  await Promise.all(changes);
  expect(turn.nextPart({ round: 1, chars: 0, calls: 0 })).toBe(turn.nextPart(START_OF_OUTPUT));
});

/** Is read at once, and not with what comes after it. */
const LONG = 'x'.repeat(8_192);

test('reading a long text as it comes takes what has come, and nothing of what was read', () => {
  const live = createLiveTurns({ maxChars: 100_000_000 });
  const publisher = live.begin(subject, true);
  const turn = live.find('s', 1)!;
  const cut = jest.spyOn(String.prototype, 'slice');
  let place = START_OF_OUTPUT;
  /** Characters that were put together so that so many pieces were read. */
  const charsFor = (pieces: number): number => {
    cut.mockClear();
    for (let index = 0; index < pieces; index += 1) {
      publisher.publishText(1, LONG);
      place = turn.nextPart(place)!.position;
    }
    return cut.mock.contexts.reduce<number>((sum, text) => sum + String(text).length, 0);
  };
  try {
    const first = charsFor(100);
    charsFor(2_000);
    expect(first).toBeGreaterThanOrEqual(100 * LONG.length);
    expect(charsFor(100)).toBeLessThan(1.1 * first);
    expect(place.chars).toBe(2_200 * LONG.length);
  } finally {
    cut.mockRestore();
  }
});
