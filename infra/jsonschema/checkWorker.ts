import { parentPort } from 'node:worker_threads';
import { check, type Question } from './check.ts';

// What the library compiles for all schemas is not of the time that the first one has.
check({ schema: '{}' });

/** Answers each question, in order. */
parentPort!.on('message', (question: Question) => parentPort!.postMessage(check(question)));
parentPort!.postMessage('ready');
