import { diffWordsWithSpace } from 'diff';
import { serveWorkerClient } from '../../shared/lib/concurrency/workerServer.ts';
import { REPLAY_LIMITS } from '../../shared/replays/limits.ts';
import type { DiffPart, TextPair } from '../../shared/replays/comparison/textDiffer.ts';

const { diffMs, diffEdits } = REPLAY_LIMITS.replays;

/** The differences word by word; undefined where there are too many. */
function diffWords({ recorded, replayed }: TextPair): DiffPart[] | undefined {
  const bounds = { timeout: diffMs, maxEditLength: diffEdits };
  return diffWordsWithSpace(recorded, replayed, bounds)?.map(({ value, added, removed }) => ({
    op: added ? 'added' : removed ? 'removed' : 'same',
    text: value,
  }));
}

serveWorkerClient(diffWords);
