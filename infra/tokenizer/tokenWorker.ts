import { parentPort } from 'node:worker_threads';
import { loadTokenizer } from './countTokens.ts';

const count = await loadTokenizer();

/** Answers each slice with its number of tokens, in order. */
parentPort!.on('message', (slice: string[]) =>
  parentPort!.postMessage(slice.reduce((tokens, text) => tokens + count(text), 0)),
);
