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

/** The lines of pieces that end with a line break, or with the text, which then has no further line. */
function linesOf(pieces: readonly DiffPiece[], without: DiffPiece['op']): DiffLine[] {
  const lines: DiffLine[] = [[]];
  for (const { op, text } of pieces.filter((piece) => piece.op !== without)) {
    const words = text.replace(/\n$/, '');
    if (words !== '') lines.at(-1)!.push({ op, text: words });
    if (text.endsWith('\n')) lines.push([]);
  }
  return lines.at(-1)!.length === 0 ? lines.slice(0, -1) : lines;
}

/** Splits a diff into blocks of unchanged and of changed lines, in order. */
export function toBlocks(pieces: readonly DiffPiece[]): DiffBlock[] {
  const blocks: DiffBlock[] = [];
  let open: DiffPiece[] = [];
  const close = (): void => {
    const [before, after] = [linesOf(open, 'added'), linesOf(open, 'removed')];
    open = [];
    if (before.length + after.length === 0) return;
    const hasChange = [...before, ...after].some((line) => line.some(({ op }) => op !== 'same'));
    const isChanged = hasChange || before.length !== after.length;
    let block = blocks.at(-1);
    if (block?.isChanged !== isChanged) {
      const next = (side?: DiffBlock['before']) => ({
        first: side ? side.first + side.lines.length : 1,
        lines: [],
      });
      block = { isChanged, before: next(block?.before), after: next(block?.after) };
      blocks.push(block);
    }
    block.before.lines.push(...before);
    block.after.lines.push(...after);
  };
  for (const { op, text } of pieces)
    for (const line of text.split(/(?<=\n)/)) {
      open.push({ op, text: line });
      // A common line break ends the lines of both sides.
      if (op === 'same' && line.endsWith('\n')) close();
    }
  close();
  return blocks;
}
