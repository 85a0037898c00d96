import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import {
  jsonText,
  successEnvelope,
} from '../../../../../../services/api/http/responses/envelope.ts';
import {
  createJsonListWriter,
  renderList,
  renderOne,
  renderPage,
  type RenderOptions,
} from '../../../../../../services/api/http/responses/listResponse.ts';
import { LIMITS } from '../../../../../../shared/limits.ts';
import { SLICE_CHARS } from '../../../../../../shared/lib/slices.ts';

const value = fc.jsonValue({ depthSize: 'small' });
const member = fc.dictionary(fc.string({ unit: 'binary' }), value, { maxKeys: 3 });

test('an answer that is written row by row is the text that JSON.stringify makes of it', () => {
  fc.assert(
    fc.property(fc.array(value), fc.option(member), fc.boolean(), (rows, members, pretty) => {
      const dataOf = (list: unknown[]): object => (members ? { ...members, turns: list } : list);
      const { head, row, tail } = createJsonListWriter(dataOf([]), pretty);
      const text = rows.flatMap((one, index) => [...row(one, index === 0)]).join('');
      expect(head + text + tail(rows.length === 0)).toBe(
        jsonText(successEnvelope(dataOf(rows)), pretty),
      );
    }),
  );
});

test.each([false, true])(
  'long texts are written in slices as the same JSON, pretty %s',
  (pretty) => {
    const texts = [
      '\u0001'.repeat(50_000),
      'a"\\\n\u{1f600}'.repeat(20_000),
      `a${'\u{1f600}'.repeat(20_000)}`,
      '\ud83d'.repeat(20_000),
      'short',
    ];
    const large = { texts, deep: { text: texts[1], list: [texts[0], 1, null] } };
    const { head, row, tail } = createJsonListWriter([], pretty);
    const pieces = [large, large].flatMap((one, index) => [...row(one, index === 0)]);
    expect(head + pieces.join('') + tail(false)).toBe(
      jsonText(successEnvelope([large, large]), pretty),
    );
    // A character takes at most six as JSON.
    expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThan(7 * SLICE_CHARS);
  },
);

interface Row {
  id: number;
  text: string;
}

const ROWS = { emptyData: [], present: (row: Row) => row, cursorOf: ({ id }: Row) => String(id) };
const TO = { account_id: 'a', pretty: false };

test('a page ends before the row with which its text would be too long, and says where to go on', async () => {
  // Each of these characters has six in JSON.
  const rows = Array.from({ length: 10 }, (_, id) => ({ id, text: '\u0001'.repeat(50_000) }));
  const { body, nextCursor: next } = await renderPage({ rows, more: false }, ROWS, TO);
  expect(JSON.parse(body.toString())).toEqual(successEnvelope(rows.slice(0, 3)));
  expect(next).toBe('2');
  expect(body.length).toBeLessThanOrEqual(LIMITS.http.pageBytes + 100);

  const large = { id: 7, text: '\u0001'.repeat(300_000) };
  const alone = await renderPage({ rows: [large], more: true }, ROWS, TO);
  expect(JSON.parse(alone.body.toString())).toEqual(successEnvelope([large]));
  expect(alone.nextCursor).toBe('7');
  expect((await renderPage({ rows: [large], more: false }, ROWS, TO)).nextCursor).toBeUndefined();
});

test('a rendered page takes the memory of its body, not of its rows as well', async () => {
  const rows = Array.from({ length: 8 }, (_, id) => ({ id, text: 'x'.repeat(120_000) }));
  const before = process.memoryUsage().arrayBuffers;
  const { body } = await renderPage({ rows, more: false }, ROWS, TO);
  expect(body.length).toBeGreaterThan(900_000);
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(1.5 * body.length);
});

test.each([false, true])(
  'a whole list comes in small pieces that together are its JSON, pretty %s',
  async (pretty) => {
    const rows = Array.from({ length: 500 }, (_, id) => ({
      id,
      text: '漢\u{1F680}'.repeat(id % 50 === 0 ? 30_000 : 40),
    }));
    const asked: (string | undefined)[] = [];
    const read = async (after: string | undefined) => {
      asked.push(after);
      const from = after === undefined ? 0 : Number(after) + 1;
      return { rows: rows.slice(from, from + 100), more: from + 100 < rows.length };
    };
    const pieces: Buffer[] = [];
    for await (const piece of renderList(read, ROWS, { ...TO, pretty })) pieces.push(piece);
    expect(Buffer.concat(pieces).toString()).toBe(jsonText(successEnvelope(rows), pretty));
    expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThanOrEqual(65_536);
    expect(asked).toEqual([undefined, '99', '199', '299', '399']);
  },
);

test('others have the process while a long list is written', async () => {
  const rows = Array.from({ length: 50 }, (_, id) => ({ id, text: 'x'.repeat(100_000) }));
  let turns = 0;
  const timer = setInterval(() => (turns += 1), 0);
  for await (const _piece of renderList(async () => ({ rows, more: false }), ROWS, TO));
  clearInterval(timer);
  expect(turns).toBeGreaterThan(5);
});

describe('an object of a large text and many short ones', () => {
  const texts = [
    '\u0001漢'.repeat(200_000),
    ...Array.from({ length: 500 }, () => 'x'.repeat(5_000)),
  ];
  const object = { texts, absent: undefined, status: 'completed', error: null };
  const renders = [
    ['alone', object, (to: RenderOptions) => renderOne(object, to)],
    [
      'in a list',
      [object],
      (to: RenderOptions) =>
        renderPage(
          { rows: [{ id: 1, text: '' }], more: false },
          { ...ROWS, present: () => object },
          to,
        ),
    ],
  ] as const;

  test.each(renders)('is rendered as its JSON, %s', async (_where, data, render) => {
    for (const pretty of [false, true]) {
      const { body, nextCursor } = await render({ ...TO, pretty });
      expect(body.toString()).toBe(jsonText(successEnvelope(data), pretty));
      expect(nextCursor).toBeUndefined();
    }
  });

  test.each(renders)(
    'leaves the process to others meanwhile, %s',
    async (_where, _data, render) => {
      for (const pretty of [false, true]) {
        let turns = 0;
        const count = (): void => {
          turns += 1;
          counting = setImmediate(count);
        };
        let counting = setImmediate(count);
        const { body } = await render({ ...TO, pretty });
        clearImmediate(counting);
        // Four turns of the event loop lie between two slices.
        expect(turns).toBeGreaterThan(body.length / 65_536);
      }
    },
  );
});
