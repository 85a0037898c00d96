import { diffLines, diffWordsWithSpace } from 'diff';

/** A piece of two texts: common to both, removed (only in the first), or added (only in the second). */
export interface DiffPiece {
  op: 'same' | 'removed' | 'added';
  text: string;
}

/** A line of one side, in pieces. */
export type DiffLine = DiffPiece[];

/** Consecutive lines: unchanged ones are equal on both sides, changed ones are beside each other. */
export interface DiffBlock {
  isChanged: boolean;
  /** Numbers of the first line of each side, from 1. */
  firstBefore: number;
  firstAfter: number;
  before: DiffLine[];
  after: DiffLine[];
}

/** Beyond these, texts are too different for a comparison by words, or by lines. */
const LINES_MS = 500;
const WORDS_MS = 100;
const MOST_WORD_EDITS = 400;

const toPart = (change: { added?: boolean; removed?: boolean; value: string }): DiffPiece => {
  const op = change.added ? 'added' : change.removed ? 'removed' : 'same';
  return { op, text: change.value };
};

const replaced = (before: string, after: string): DiffPiece[] =>
  [
    { op: 'removed' as const, text: before },
    { op: 'added' as const, text: after },
  ].filter(({ text }) => text !== '');

const compareWords = (before: string, after: string): DiffPiece[] =>
  diffWordsWithSpace(before, after, { timeout: WORDS_MS, maxEditLength: MOST_WORD_EDITS })?.map(
    toPart,
  ) ?? replaced(before, after);

/**
 * Compares two texts by lines, and the words of the lines that differ. Texts that take too long are
 * shown as replaced.
 */
export function diffText(before: string, after: string): DiffPiece[] {
  const lines = diffLines(before, after, { timeout: LINES_MS })?.map(toPart);
  if (!lines) return replaced(before, after);
  const deadline = performance.now() + LINES_MS;
  const parts: DiffPiece[] = [];
  for (let at = 0; at < lines.length; at += 1) {
    const [one, next] = [lines[at]!, lines[at + 1]];
    const isPair = one.op === 'removed' && next?.op === 'added' && performance.now() < deadline;
    if (isPair) parts.push(...compareWords(one.text, next.text));
    else parts.push(one);
    if (isPair) at += 1;
  }
  return parts;
}

const isSame = (line: DiffLine): boolean => line.every(({ op }) => op === 'same');

/** Splits a diff into lines: blocks of unchanged and of changed lines, in order. */
export function toBlocks(parts: readonly DiffPiece[]): DiffBlock[] {
  const blocks: DiffBlock[] = [];
  const open = { before: [[]] as DiffLine[], after: [[]] as DiffLine[] };
  const next = { before: 1, after: 1 };

  const push = (side: 'before' | 'after', { op, text }: DiffPiece): void => {
    const [first, ...rest] = text.split('\n');
    if (first !== '') open[side].at(-1)!.push({ op, text: first! });
    for (const line of rest) open[side].push(line === '' ? [] : [{ op, text: line }]);
  };

  /** Closes the lines that have ended on both sides; with `isLast`, all of them. */
  function flush(isLast: boolean): void {
    const take = (side: 'before' | 'after'): DiffLine[] => {
      const taken = isLast ? open[side].splice(0) : open[side].splice(0, open[side].length - 1);
      // A text that ends with a line break has no further line.
      if (isLast && taken.at(-1)?.length === 0) taken.pop();
      return taken;
    };
    const [before, after] = [take('before'), take('after')];
    const isChanged =
      before.length !== after.length || !before.every(isSame) || !after.every(isSame);
    if (before.length + after.length === 0) return;
    const last = blocks.at(-1);
    if (last?.isChanged === isChanged) {
      last.before.push(...before);
      last.after.push(...after);
    } else {
      blocks.push({ isChanged, firstBefore: next.before, firstAfter: next.after, before, after });
    }
    next.before += before.length;
    next.after += after.length;
  }

  for (const { op, text } of parts) {
    if (op !== 'added' && op !== 'same') push('before', { op, text });
    if (op !== 'removed' && op !== 'same') push('after', { op, text });
    if (op !== 'same') continue;
    // A common line break ends the lines of both sides.
    for (const line of text.split(/(?<=\n)/)) {
      push('before', { op, text: line });
      push('after', { op, text: line });
      if (line.endsWith('\n')) flush(false);
    }
  }
  flush(true);
  return blocks;
}
