import { serveWorkerClient } from '../../shared/lib/concurrency/workerServer.ts';
import { checkArguments } from './checkArguments.ts';
import { check, type Question } from './check.ts';

// Compile the meta-schema now, so that it doesn't count for the first request.
check({ schema: '{}' });

serveWorkerClient((question: Question) =>
  question.isTool ? checkArguments(question) : check(question),
);
