/**
 * For `--import`: each thread that ends says on standard error whether it has loaded Node's own
 * undici, the modules of its `fetch` and WebSocket.
 */
import { writeSync } from 'node:fs';
import { threadName } from 'node:worker_threads';

process.on('exit', () => {
  const hasLoaded = process.moduleLoadList.some((name) => name.includes('deps/undici'));
  writeSync(2, `${JSON.stringify({ thread: threadName, undici: hasLoaded })}\n`);
});
