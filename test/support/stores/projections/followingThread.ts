/**
 * A thread that follows the event log in `workerData.folder` and posts the id of every event, batch
 * by batch.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { openSqliteEventLog } from '../../../../infra/sqlite/eventStore/log.ts';

const log = openSqliteEventLog(workerData as { folder: string });
const controller = new AbortController();
parentPort?.once('message', () => controller.abort());
for await (const batch of log.subscribe({ batchSize: 10, signal: controller.signal })) {
  parentPort?.postMessage(batch.events.map((event) => event.id));
}
await log.close();
