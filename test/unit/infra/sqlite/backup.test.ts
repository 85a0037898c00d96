import { randomUUID } from 'node:crypto';
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { copyEventLog, copyKeyStore, endOfEventLog } from '../../../../infra/sqlite/backup.ts';
import { openSqliteEventStore } from '../../../../infra/sqlite/eventStore/eventStore.ts';
import { openSqliteKeyStore } from '../../../../infra/sqlite/keyStore/keyStore.ts';
import { createMasterKeyFile, readMasterKeys } from '../../../../infra/files/masterKeyFile.ts';
import type { EventStore } from '../../../../shared/ports/eventStore.ts';
import type { WrappedKey } from '../../../../shared/ports/keyStore.ts';
import { newTextKey } from '../../../support/stores/textKeys.ts';
import { temporaryFolder } from '../../../support/stores/sqlite/sqliteEventStore.ts';

let parent: string;
let from: string;
let to: string;
beforeEach(async () => {
  parent = await temporaryFolder();
  [from, to] = [join(parent, 'from'), join(parent, 'to')];
});
afterEach(() => rm(parent, { recursive: true }));

const events = (count: number) =>
  Array.from({ length: count }, () => ({
    id: randomUUID(),
    type: 'test.happened.v1',
    data: '{}',
    metadata: '{}',
  }));

describe('copyEventLog', () => {
  const copy = (signal = new AbortController().signal, onProgress = (_events: number) => {}) =>
    copyEventLog({ from, to, end: endOfEventLog(from)!, signal, onProgress });

  async function withStore<Result>(
    folder: string,
    work: (store: EventStore) => Promise<Result>,
  ): Promise<Result> {
    const store = await openSqliteEventStore({ folder });
    try {
      return await work(store);
    } finally {
      await store.close();
    }
  }

  test('stops after a batch, and continues with what came since', async () => {
    await withStore(from, async (store) => {
      for (let stream = 0; stream < 5; stream += 1)
        await store.append(`test-${stream}`, 'no_stream', events(1_000));
      const stop = new AbortController();
      const seen: number[] = [];
      const stopped = await copy(stop.signal, (count) => {
        seen.push(count);
        if (count > 0) stop.abort();
      });
      expect([stopped, seen.length, seen.at(-1)! < 5_000]).toEqual([false, 2, true]);
      await store.append('test-5', 'no_stream', events(1));
      seen.length = 0;
      expect(await copy(undefined, (count) => void seen.push(count))).toBe(true);
      expect([seen[0]! > 0, seen.at(-1)]).toEqual([true, 5_001]);
      expect(endOfEventLog(to)).toBe(await store.head());
    });
    expect(await readdir(to)).toEqual(['events.db']);
    await withStore(to, async (store) => {
      expect(await store.readStream('test-5', { direction: 'forwards', limit: 2 })).toHaveLength(1);
    });
  });

  test('does not continue the copy of another log', async () => {
    await withStore(to, (store) => store.append('test-0', 'no_stream', events(2)));
    await withStore(from, (store) => store.append('test-0', 'no_stream', events(2)));
    await expect(copy()).rejects.toMatchObject({
      code: 'configuration_invalid',
      message: expect.stringContaining('a part of another event log'),
    });
  });
});

describe('copyKeyStore', () => {
  let keys: WrappedKey[];
  beforeEach(async () => {
    const store = await openSqliteKeyStore({ folder: from });
    createMasterKeyFile(join(from, 'master.key'));
    const master = readMasterKeys(join(from, 'master.key'));
    keys = Array.from({ length: 3 }, () => master.wrap(newTextKey()));
    await store.insert(keys);
    await store.endErasure('session-1', [keys[0]!.key_id]);
    await store.beginErasure('session-2', 'why');
    await store.close();
  });

  test('reads the end of the log while no key can be added or destroyed', async () => {
    const other = new DatabaseSync(join(from, 'keys.db'), { timeout: 0 });
    const write = `UPDATE text_keys SET wrapped = NULL, master_key_id = NULL`;
    const end = await copyKeyStore(from, to, () => {
      expect(() => other.exec(write)).toThrow('locked');
      return 'the end';
    });
    expect(end).toBe('the end');
    other.exec(write);
    other.close();
    const copy = await openSqliteKeyStore({ folder: to });
    const found = await copy.find(keys.map(({ key_id }) => key_id));
    expect(found.get(keys[0]!.key_id)).toBe('destroyed');
    expect(found.get(keys[2]!.key_id)).toMatchObject(keys[2]!);
    expect(await copy.listErasures(2)).toEqual([{ stream: 'session-2', why: 'why' }]);
    await copy.close();
  });

  test('replaces a copy, which then has no key that was destroyed since', async () => {
    await copyKeyStore(from, to, () => undefined);
    const store = await openSqliteKeyStore({ folder: from });
    await store.endErasure('session-2', [keys[1]!.key_id]);
    await store.close();
    await copyKeyStore(from, to, () => undefined);
    expect(await readdir(to)).toEqual(['keys.db']);
    const copy = await openSqliteKeyStore({ folder: to });
    expect(await copy.count()).toEqual(
      new Map([
        [keys[0]!.master_key_id, 1],
        ['destroyed', 2],
      ]),
    );
    await copy.close();
  });
});
