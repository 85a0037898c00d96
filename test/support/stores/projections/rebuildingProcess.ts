/**
 * A process that rebuilds the read models of the folder in its argument and writes a line for every
 * batch, to be killed in between.
 */
import { writeSync } from 'node:fs';
import { openSqliteEventLog } from '../../../../infra/sqlite/eventStore/log.ts';
import { openSqliteRebuildStore } from '../../../../infra/sqlite/readModels/rebuildStore.ts';
import { rebuildReadModels } from '../../../../services/followers/projector/rebuild.ts';
import { recordingLogger } from './projector.ts';

const folder = process.argv[2] ?? '';
const log = openSqliteEventLog({ folder });
await rebuildReadModels({
  log,
  store: await openSqliteRebuildStore({ folder }),
  signal: new AbortController().signal,
  onProgress: ({ events }) => void writeSync(1, `${events}\n`),
  logger: recordingLogger().logger,
});
await log.close();
