/**
 * A process beside the tests, working on the data folder it is given:
 *   append <folder> <stream> <count>   appends to a stream that others append to, too
 *   lock <folder>                      holds the server lock until it is killed
 */
import { randomUUID } from 'node:crypto';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { openSqliteEventStore } from '../../../../infra/sqlite/eventStore/eventStore.ts';
import { acquireServerLock } from '../../../../infra/sqlite/serverLock.ts';
import { isTurnlogError } from '../../../../shared/lib/errors/turnlogError.ts';

const [command, folder = '', stream = '', count = '0'] = process.argv.slice(2);

async function append(): Promise<void> {
  const store = await openSqliteEventStore({ folder });
  for (let written = 0; written < Number(count);) {
    const [last] = await store.readStream(stream, { direction: 'backwards', limit: 1 });
    try {
      await store.append(stream, last?.revision ?? 'no_stream', [
        { id: randomUUID(), type: 'other', data: '{}', metadata: '{}' },
      ]);
      written += 1;
    } catch (error) {
      if (!isTurnlogError(error, 'stream_conflict')) throw error;
    }
  }
  await store.close();
}

function lock(): void {
  acquireServerLock(folder);
  // What nobody refers to any more is collected.
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  process.stdout.write('held\n');
  setInterval(() => undefined, 1000);
}

if (command === 'append') await append();
if (command === 'lock') lock();
