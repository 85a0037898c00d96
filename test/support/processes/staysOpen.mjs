/** Preloaded into a service under test: something that nobody closes keeps its process alive. */
import { isMainThread } from 'node:worker_threads';

if (isMainThread) setInterval(() => undefined, 1_000);
