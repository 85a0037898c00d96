import { diffWordsWithSpace } from 'diff';
import { LIMITS } from '../../shared/limits.ts';

interface Part {
  op: 'same' | 'removed' | 'added';
  text: string;
}

/**
 * What differs between two outputs, word by word; or why that is not shown: one of them is too long,
 * or too much of them differs to be found in time.
 */
export function diffOf({
  recorded,
  replayed,
}: {
  recorded: string;
  replayed: string;
}): { diff: Part[] } | { diff_omitted: 'too_long' | 'too_different' } {
  const { diffChars, diffMs, diffEdits } = LIMITS.replays;
  if (Math.max(recorded.length, replayed.length) > diffChars) return { diff_omitted: 'too_long' };
  const parts = diffWordsWithSpace(recorded, replayed, {
    timeout: diffMs,
    maxEditLength: diffEdits,
  });
  if (!parts) return { diff_omitted: 'too_different' };
  return {
    diff: parts.map(({ value, added, removed }) => ({
      op: added ? 'added' : removed ? 'removed' : 'same',
      text: value,
    })),
  };
}
