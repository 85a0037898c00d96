/** A process that is killed while it keeps or destroys keys of texts, again and again. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { openSqliteKeyStore } from '../../infra/sqlite/keyStore/keyStore.ts';
import type { KeyStore, WrappedKey } from '../../shared/ports/keyStore.ts';
import { size } from '../support/jest/size.ts';
import { masterKeysOf, newTextKey } from '../support/stores/textKeys.ts';
import { plainEnvironment } from '../support/processes/plainEnvironment.ts';
import { temporaryFolder } from '../support/stores/sqlite/sqliteEventStore.ts';

const KILLS = size({ small: 6, full: 200 });
const PROCESS = new URL('../support/stores/keyStoreProcess.ts', import.meta.url).pathname;

let folder: string;
let store: KeyStore;
beforeEach(async () => {
  folder = await temporaryFolder();
  store = await openSqliteKeyStore({ folder });
});
afterEach(async () => {
  await store.close();
  await rm(folder, { recursive: true });
});

/** Kills a process at work after some milliseconds; answers with what it had acknowledged. */
async function killedAfter(ms: number, ...args: string[]): Promise<string[]> {
  const child = spawn(process.execPath, [PROCESS, ...args], {
    env: plainEnvironment(),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let out = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text));
  await once(child.stdout, 'data');
  await sleep(ms);
  child.kill('SIGKILL');
  await once(child, 'close');
  return out.slice(0, out.lastIndexOf('\n')).split(/\s/).slice(1).filter(Boolean);
}

test(
  'every key that was acknowledged is kept, with all that came with it',
  async () => {
    for (let kill = 0; kill < KILLS; kill += 1) {
      const ids = await killedAfter(Math.random() * 200, 'insert', folder);
      const found = await store.find(ids);
      expect(ids.filter((id) => typeof found.get(id) !== 'object')).toEqual([]);
      const kept = [...(await store.count()).values()].reduce((all, keys) => all + keys, 0);
      expect(kept % 20).toBe(0);
    }
  },
  KILLS * 10_000,
);

test(
  'an erasure that was acknowledged left no byte, and one that was not is noted or was not begun',
  async () => {
    const masterKeys = masterKeysOf();
    for (let kill = 0; kill < KILLS; kill += 1) {
      const keys: WrappedKey[] = Array.from({ length: 400 }, () => masterKeys.wrap(newTextKey()));
      await store.insert(keys);
      const ids = keys.map(({ key_id }) => key_id);
      const ended = new Set(await killedAfter(Math.random() * 200, 'erase', folder, ...ids));
      const noted = new Set((await store.listErasures(1_000)).map(({ stream }) => stream));
      const found = await store.find(ids);
      const files = await Promise.all(
        (await readdir(folder)).map((name) => readFile(join(folder, name))),
      );
      for (const { key_id, wrapped } of keys) {
        const there = files.some((all) => all.includes(Buffer.from(wrapped)));
        // What was done and not told of any more is as good.
        if (ended.has(key_id)) expect([found.get(key_id), there]).toEqual(['destroyed', false]);
        else if (found.get(key_id) === 'destroyed')
          expect(noted.has(`session-${key_id}`) || !there).toBe(true);
      }
      for (const stream of noted) await store.endErasure(stream, [stream.slice(8)]);
      expect(await store.listErasures(1)).toEqual([]);
    }
  },
  KILLS * 10_000,
);
