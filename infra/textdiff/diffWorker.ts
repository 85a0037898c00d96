import { parentPort } from 'node:worker_threads';
import type { TextPair } from '../../shared/replays/comparison/textDiffer.ts';
import { diff } from './diff.ts';

/** Answers each pair, in order. */
parentPort!.on('message', (texts: TextPair) => parentPort!.postMessage(diff(texts)));
parentPort!.postMessage('ready');
