import { diffWordsWithSpace } from 'diff';
import { REPLAY_LIMITS } from '../../shared/replays/limits.ts';
import type { DiffPart, TextPair } from '../../shared/replays/comparison/textDiffer.ts';

const { diffMs, diffEdits } = REPLAY_LIMITS.replays;

/** What differs, word by word; undefined where too much does. */
export function diff({ recorded, replayed }: TextPair): DiffPart[] | undefined {
  const bounds = { timeout: diffMs, maxEditLength: diffEdits };
  return diffWordsWithSpace(recorded, replayed, bounds)?.map(({ value, added, removed }) => ({
    op: added ? 'added' : removed ? 'removed' : 'same',
    text: value,
  }));
}
