import { diffLines, diffWordsWithSpace } from 'diff';

/** A piece of two texts: common to both, removed (only in the first), or added (only in the second). */
export interface DiffPiece {
  op: 'same' | 'removed' | 'added';
  text: string;
}

/** A line of one side, in pieces. */
export type DiffLine = DiffPiece[];

/** Consecutive lines: equal on both sides, or changed ones beside each other; `first` counts from 1. */
export interface DiffBlock {
  isChanged: boolean;
  before: { first: number; lines: DiffLine[] };
  after: { first: number; lines: DiffLine[] };
}

/** Texts that take longer are shown as replaced. */
const LINES_MS = 500;
const WORDS_MS = 100;

const toPiece = (change: { added?: boolean; removed?: boolean; value: string }): DiffPiece => {
  const op = change.added ? 'added' : change.removed ? 'removed' : 'same';
  return { op, text: change.value };
};

/** Compares two texts by lines, and the words of the lines that differ. */
export function diffText(before: string, after: string): DiffPiece[] {
  const removed = { op: 'removed', text: before } as const;
  const added = { op: 'added', text: after } as const;
  const lines = diffLines(before, after, { timeout: LINES_MS })?.map(toPiece) ?? [removed, added];
  const deadline = performance.now() + LINES_MS;
  return lines.flatMap((line, at) => {
    const [last, next] = [lines[at - 1], lines[at + 1]];
    if (line.op === 'added' && last?.op === 'removed') return [];
    if (line.op !== 'removed' || next?.op !== 'added') return line;
    const timeout = Math.min(deadline - performance.now(), WORDS_MS);
    const words = timeout > 0 && diffWordsWithSpace(line.text, next.text, { timeout });
    return words ? words.map(toPiece) : [line, next];
  });
}

const isSame = (line: DiffLine): boolean => line.every(({ op }) => op === 'same');

/** Splits a diff into blocks of unchanged and of changed lines, in order. */
export function toBlocks(pieces: readonly DiffPiece[]): DiffBlock[] {
  const blocks: DiffBlock[] = [];
  const open: Record<'before' | 'after', DiffLine[]> = { before: [[]], after: [[]] };

  /** Closes the lines that have ended on both sides, or all lines. */
  function flush(isLast: boolean): void {
    const take = (side: 'before' | 'after'): DiffLine[] => {
      const taken = open[side].splice(0, open[side].length - (isLast ? 0 : 1));
      // A text that ends with a line break has no further line.
      return isLast && taken.at(-1)?.length === 0 ? taken.slice(0, -1) : taken;
    };
    const [before, after] = [take('before'), take('after')];
    if (before.length + after.length === 0) return;
    const isChanged = before.length !== after.length || ![...before, ...after].every(isSame);
    const last = blocks.at(-1);
    if (last?.isChanged === isChanged) {
      last.before.lines.push(...before);
      last.after.lines.push(...after);
      return;
    }
    const next = (side: 'before' | 'after') =>
      last ? last[side].first + last[side].lines.length : 1;
    blocks.push({
      isChanged,
      before: { first: next('before'), lines: before },
      after: { first: next('after'), lines: after },
    });
  }

  for (const { op, text } of pieces)
    for (const line of text.split(/(?<=\n)/)) {
      for (const side of ['before', 'after'] as const) {
        if (op === (side === 'before' ? 'added' : 'removed')) continue;
        const words = line.replace(/\n$/, '');
        if (words !== '') open[side].at(-1)!.push({ op, text: words });
        if (line.endsWith('\n')) open[side].push([]);
      }
      // A common line break ends the lines of both sides.
      if (op === 'same' && line.endsWith('\n')) flush(false);
    }
  flush(true);
  return blocks;
}
