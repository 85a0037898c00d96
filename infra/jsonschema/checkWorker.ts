import { parentPort } from 'node:worker_threads';
import { timed } from '../../shared/lib/time/processorTime.ts';
import { checkArguments } from './checkArguments.ts';
import { check, type Question } from './check.ts';

// Compile the meta-schema now, so that it doesn't count for the first request.
check({ schema: '{}' });

/** Answers each question, in order. */
parentPort!.on('message', (question: Question) =>
  parentPort!.postMessage(
    timed(() => (question.isTool ? checkArguments(question) : check(question))),
  ),
);
parentPort!.postMessage('ready');
