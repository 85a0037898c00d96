/**
 * A process beside the tests that works on the key store of a data folder until it is killed, and
 * prints what was done:
 *   insert <folder>            keeps keys, and prints their ids once that was acknowledged
 *   erase <folder> <id…>       notes and ends the erasure of one key after the other
 */
import { openSqliteKeyStore } from '../../../infra/sqlite/keyStore/keyStore.ts';
import { masterKeysOf, newTextKey } from './textKeys.ts';

const [command, folder = '', ...ids] = process.argv.slice(2);
const store = await openSqliteKeyStore({ folder });
const masterKeys = masterKeysOf();
process.stdout.write('ready\n');

async function insert(): Promise<never> {
  for (;;) {
    const keys = Array.from({ length: 20 }, () => masterKeys.wrap(newTextKey()));
    await store.insert(keys);
    process.stdout.write(`${keys.map(({ key_id }) => key_id).join(' ')}\n`);
  }
}

async function erase(id: string): Promise<void> {
  await store.beginErasure(`session-${id}`, 'why');
  await store.endErasure(`session-${id}`, [id]);
  process.stdout.write(`${id}\n`);
}

if (command === 'insert') await insert();
for (const id of ids) await erase(id);
