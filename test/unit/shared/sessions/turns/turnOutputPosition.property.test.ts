import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { createLiveTurns } from '../../../../../shared/runs/live/liveTurns.ts';
import {
  START_OF_OUTPUT,
  formatTurnPosition,
  partsAfter,
  parseTurnPosition,
  type TurnRound,
  type TurnPart,
} from '../../../../../shared/sessions/turns/turnOutputPosition.ts';

const text = fc
  .array(fc.constantFrom('a', '😀', 'é', '\n', '👩‍👩‍👧', 'x'.repeat(5_000), '😀'.repeat(4_100)), {
    maxLength: 8,
  })
  .map((parts) => parts.join(''));
const callOf = (round: number, index: number) => ({
  turn: 1,
  round,
  call_id: `${round}.${index}`,
  tool: 't',
  arguments: '',
  result: '',
  is_error: false,
  duration_ms: 0,
});
const turn = fc
  .array(fc.tuple(text, fc.integer({ min: 1, max: 3 }), text), { maxLength: 3 })
  .chain((called) => fc.record({ called: fc.constant(called), output: text, reasoned: text }))
  .map(({ called, output, reasoned }): TurnRound[] => [
    ...called.map(([content, calls, reasoning], index) => ({
      reasoning,
      text: content,
      calls: Array.from({ length: calls }, (_, at) => callOf(index + 1, at)),
    })),
    { reasoning: reasoned, text: output, calls: [] },
  ]);

/** What a reader has of a turn: its reasoning and texts by round, and its calls. */
const holding = (parts: readonly TurnPart[]) => ({
  texts: Object.fromEntries(
    [...Map.groupBy(parts, ({ position }) => position.round)].map(([round, of]) => [
      round,
      (['reasoning', 'text'] as const).map((kind) =>
        of.map((part) => (part.type === kind ? part.text : '')).join(''),
      ),
    ]),
  ),
  calls: parts.flatMap((part) => (part.type === 'called' ? [part.call.call_id] : [])),
});
const whole = (rounds: readonly TurnRound[]) => {
  const had = rounds.map(
    ({ reasoning, text: of, calls }, index) => [index + 1, [reasoning, of], calls.length] as const,
  );
  return {
    texts: Object.fromEntries(
      had
        .filter(([, texts, calls]) => texts.join('') !== '' || calls > 0)
        .map(([round, texts]) => [round, texts]),
    ),
    calls: rounds.flatMap(({ calls }) => calls.map(({ call_id }) => call_id)),
  };
};

test('a recorded turn that is cut behind any of its events goes on with exactly the rest', () => {
  fc.assert(
    fc.property(turn, fc.nat(), (rounds, cut) => {
      const parts = [...partsAfter(rounds, START_OF_OUTPUT)];
      const had = parts.slice(0, cut % (parts.length + 1));
      const name = formatTurnPosition(1, had.at(-1)?.position ?? START_OF_OUTPUT);
      const place = parseTurnPosition(name, 1) as typeof START_OF_OUTPUT;
      const all = [...had, ...partsAfter(rounds, place)];
      expect(holding(all)).toEqual(whole(rounds));
      expect(all.every((part) => part.type === 'called' || part.text.isWellFormed())).toBe(true);
    }),
  );
});

test('a turn that is followed while it runs, and left anywhere for the record, is whole as well', () => {
  fc.assert(
    fc.property(turn, fc.nat(), fc.integer({ min: 1, max: 3_000 }), (rounds, cut, size) => {
      const live = createLiveTurns({ lingerMs: 0 });
      const publisher = live.begin({ account_id: 'a', session_id: 's', turn: 1 }, true);
      const followed = live.find('s', 1)!;
      const had: TurnPart[] = [];
      const read = (): void => {
        for (let more = true; more && had.length < cut % 50;) {
          const part = followed.nextPart(had.at(-1)?.position ?? START_OF_OUTPUT);
          if (part) had.push(part);
          more = part !== undefined;
        }
      };
      for (const [index, { reasoning, text: of, calls }] of rounds.entries()) {
        for (const [kind, pieces] of [
          ['reasoning', reasoning],
          ['text', of],
        ] as const)
          for (const piece of pieces.match(new RegExp(`[^]{1,${size}}`, 'gu')) ?? []) {
            publisher.publishText(index + 1, piece, kind);
            read();
          }
        for (const call of calls) publisher.publishToolCall(call);
        read();
      }
      const all = [...had, ...partsAfter(rounds, had.at(-1)?.position ?? START_OF_OUTPUT)];
      expect(holding(all)).toEqual(whole(rounds));
    }),
  );
});

test('names of places are read as they were given, and nothing else is one', () => {
  for (const place of [
    START_OF_OUTPUT,
    { round: 3, chars: 12, calls: 0 },
    { round: 2, chars: 5, calls: 4 },
    { round: 2, reasoning: 9, chars: 0, calls: 0 },
  ])
    expect(parseTurnPosition(formatTurnPosition(7, place), 7)).toEqual(place);
  expect(parseTurnPosition(formatTurnPosition(7, 'end'), 7)).toBe('end');
  for (const name of [
    '',
    '7',
    '8-1-0',
    '7-0-0',
    '7-1',
    '7-1-0-0',
    '7-1-0-1-1',
    '7-1-0-r0',
    '7-1-0-r1-1',
    '7-1-1e3',
    '07-1-0',
  ])
    expect(parseTurnPosition(name, 7)).toBeUndefined();
});
