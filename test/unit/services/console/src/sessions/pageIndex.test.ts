import { describe, expect, test } from '@jest/globals';
import {
  EMPTY_INDEX,
  notePage,
  pagesWithin,
  type PageIndex,
} from '../../../../../../services/console/src/sessions/pageIndex.ts';

const rows = (count: number): unknown[] => Array.from({ length: count });

/** The index after pages of these sizes were read in order, the last of which may be the end. */
function indexOf(sizes: readonly number[], isComplete: boolean): PageIndex {
  return sizes.reduce((index, size, at) => {
    const next = isComplete && at === sizes.length - 1 ? undefined : `cursor ${at}`;
    return notePage(index, index.pages.at(-1)!, { rows: rows(size), next });
  }, EMPTY_INDEX);
}

describe('the pages of a list that is read by cursors', () => {
  test('are placed after each other, whatever their size', () => {
    expect(indexOf([200, 150, 7], true)).toEqual({
      pages: [
        { after: undefined, start: 0 },
        { after: 'cursor 0', start: 200 },
        { after: 'cursor 1', start: 350 },
      ],
      count: 357,
      isComplete: true,
    });
  });

  test('go on after the last one that was read, while there is a cursor', () => {
    const index = indexOf([200, 200], false);
    expect(index).toMatchObject({ count: 400, isComplete: false });
    expect(index.pages.at(-1)).toEqual({ after: 'cursor 1', start: 400 });
  });

  test('keep their places when an earlier one is read again', () => {
    const index = indexOf([200, 200, 3], true);
    expect(notePage(index, index.pages[0]!, { rows: rows(180), next: 'cursor 0' })).toBe(index);
  });

  test('grow at their end', () => {
    const index = indexOf([200, 3], true);
    const last = index.pages[1]!;
    expect(notePage(index, last, { rows: rows(3), next: undefined })).toBe(index);
    expect(notePage(index, last, { rows: rows(5), next: undefined }).count).toBe(205);
    const full = notePage(index, last, { rows: rows(200), next: 'more' });
    expect(full).toMatchObject({ count: 400, isComplete: false });
    expect(full.pages.at(-1)).toEqual({ after: 'more', start: 400 });
  });

  test('are found by the rows on screen', () => {
    const index = indexOf([200, 150, 50], false);
    const starts = (from: number, to: number) =>
      pagesWithin(index, from, to).map(({ start }) => start);
    expect(starts(0, 40)).toEqual([0]);
    expect(starts(190, 210)).toEqual([0, 200]);
    expect(starts(199, 199)).toEqual([0]);
    expect(starts(200, 349)).toEqual([200]);
    expect(starts(100, 390)).toEqual([0, 200, 350]);
    expect(starts(390, 420)).toEqual([350, 400]);
    expect(pagesWithin(EMPTY_INDEX, 0, 1_000)).toEqual(EMPTY_INDEX.pages);
  });
});
