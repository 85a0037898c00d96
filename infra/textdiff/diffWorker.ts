import { parentPort } from 'node:worker_threads';
import { diffWordsWithSpace } from 'diff';
import { measureProcessorTime } from '../../shared/lib/time/processorTime.ts';
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

/** Answers each pair, in order. */
parentPort!.on('message', (texts: TextPair) =>
  parentPort!.postMessage(measureProcessorTime(() => diffWords(texts))),
);
parentPort!.postMessage('ready');
