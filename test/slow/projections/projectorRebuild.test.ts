import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { openSqliteEventStore } from '../../../infra/sqlite/eventStore/eventStore.ts';
import { retireGenerationsBefore } from '../../../infra/sqlite/readModels/generations.ts';
import { openSqliteProjectionStore } from '../../../infra/sqlite/readModels/projectionStore.ts';
import { openSqliteRebuildStore } from '../../../infra/sqlite/readModels/rebuildStore.ts';
import { withReservedSpace } from '../../../services/compose/operator/readModels.ts';
import {
  rebuildReadModels,
  type RebuildProgress,
} from '../../../services/followers/projector/rebuild.ts';
import { storeUnavailableError } from '../../../shared/lib/errors/turnlogError.ts';
import type { EventStore } from '../../../shared/ports/eventStore.ts';
import { parseFreeLevel } from '../../../shared/storage/diskWatch.ts';
import {
  appendAgents,
  appendTo,
  recordingLogger,
  startProjector,
} from '../../support/stores/projections/projector.ts';
import { sessionStarted, turnCompleted } from '../../support/builders/events.ts';
import { buildingName, fileName } from '../../support/stores/projections/generationNames.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

const EVENTS = 6000;
let folder: string;
let store: EventStore;

beforeEach(async () => {
  folder = await temporaryFolder();
  store = await openSqliteEventStore({ folder });
  await appendAgents(store, 0, EVENTS / 3, 2);
});

afterEach(async () => {
  await store.close();
  await rm(folder, { recursive: true });
});

const files = (): string[] => readdirSync(join(folder, 'read-models')).toSorted();

async function rebuild(
  onProgress: (progress: RebuildProgress) => void,
  signal = new AbortController().signal,
): Promise<boolean> {
  return rebuildReadModels({
    log: store,
    store: await openSqliteRebuildStore({ folder }),
    signal,
    onProgress,
    logger: recordingLogger().logger,
  });
}

function agentRows(file: string): unknown[] {
  const database = new DatabaseSync(join(folder, 'read-models', file), { readOnly: true });
  const rows = database
    .prepare('SELECT agent_id, name, revision, position FROM agents ORDER BY agent_id')
    .all();
  database.close();
  return rows;
}

test('a rebuild shows its progress and leaves one file, complete and without companions', async () => {
  const seen: RebuildProgress[] = [];
  expect(await rebuild((progress) => seen.push(progress))).toBe(true);
  expect(files()).toEqual([fileName(1)]);
  expect(agentRows(fileName(1))).toHaveLength(EVENTS / 3);
  expect(seen.length).toBeGreaterThan(2);
  expect(seen.map(({ percent }) => percent)).toEqual(
    seen.map(({ percent }) => percent).toSorted((a, b) => a - b),
  );
  expect(seen.at(-1)).toMatchObject({ events: EVENTS, percent: 100, parked: 0 });
  expect(seen.at(-1)?.events_per_second).toBeGreaterThan(0);
});

test('an interrupted rebuild is not published, and the next one goes on where it was', async () => {
  const stop = new AbortController();
  let before = 0;
  expect(
    await rebuild(({ events }) => {
      before = events;
      stop.abort();
    }, stop.signal),
  ).toBe(false);
  expect(before).toBeLessThan(EVENTS);
  expect(files()).toEqual([buildingName(1)]);
  let after = 0;
  expect(await rebuild(({ events }) => (after = events))).toBe(true);
  expect(before + after).toBe(EVENTS);
  expect(files()).toEqual([fileName(1)]);
  expect(agentRows(fileName(1))).toHaveLength(EVENTS / 3);
});

test('a rebuild killed at any moment leaves rows and checkpoint that fit each other, and the next one completes them', async () => {
  await rebuild(() => undefined);
  const complete = agentRows(fileName(1));
  let interrupted = 0;
  // Where this process is too slow, the rebuild is over before it is killed: then once more.
  for (let attempt = 0; attempt < 4 || interrupted === 0; attempt += 1) {
    const batches = (attempt % 4) + 1;
    const child = spawn(
      process.execPath,
      [
        fileURLToPath(
          new URL('../../support/stores/projections/rebuildingProcess.ts', import.meta.url),
        ),
        folder,
      ],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    const exit = once(child, 'exit');
    let lines = 0;
    for await (const chunk of child.stdout) {
      lines += String(chunk).split('\n').length - 1;
      if (lines >= batches) child.kill('SIGKILL');
    }
    await exit;
    const building = files().find((name) => name.endsWith('.building.db'));
    if (building === undefined) continue;
    interrupted += 1;
    expect(inconsistencies(building)).toEqual([]);
  }
  expect(await rebuild(() => undefined)).toBe(true);
  const newest = files()
    .filter((name) => /^v\d+\.\d+\.db$/.test(name))
    .at(-1) as string;
  expect(newest).not.toBe(fileName(1));
  expect(agentRows(newest)).toEqual(complete);
});

/** Rows beyond the checkpoint, and events up to the checkpoint that are in no row. */
function inconsistencies(file: string): unknown[] {
  const database = new DatabaseSync(join(folder, 'read-models', file));
  database.prepare('ATTACH ? AS log').run(join(folder, 'events.db'));
  const found = database
    .prepare(
      `SELECT stream, max(events.revision) AS due, agents.revision AS found FROM log.events
       LEFT JOIN agents ON agents.agent_id = substr(stream, 7)
       WHERE events.position <= coalesce((SELECT CAST(checkpoint.position AS INTEGER) FROM main.checkpoint), 0)
       GROUP BY stream HAVING found IS NOT due
       UNION ALL SELECT agent_id, NULL, revision FROM agents WHERE position > coalesce((SELECT checkpoint.position FROM main.checkpoint), '')`,
    )
    .all();
  database.close();
  return found;
}

test('a second rebuild at the same time is refused', async () => {
  const first = await openSqliteRebuildStore({ folder });
  await expect(openSqliteRebuildStore({ folder })).rejects.toMatchObject({
    code: 'rebuild_running',
  });
  await first.close();
  await (await openSqliteRebuildStore({ folder })).close();
});

test('a rebuild at work keeps its file while a server makes a generation beside it, and is published after that one', async () => {
  const building = await openSqliteRebuildStore({ folder });
  await (await openSqliteProjectionStore({ folder, atLeast: 2 })).close();
  retireGenerationsBefore(folder, 2);
  await expect(openSqliteRebuildStore({ folder })).rejects.toMatchObject({
    code: 'rebuild_running',
  });
  await building.publish(async () => undefined);
  expect(files()).toEqual([fileName(2), fileName(3)]);
});

test('a rebuild whose file was deleted says so in a sentence', async () => {
  const building = await openSqliteRebuildStore({ folder });
  await rm(join(folder, 'read-models', buildingName(1)));
  await expect(building.publish(async () => undefined)).rejects.toMatchObject({
    code: 'store_unavailable',
    message: expect.stringContaining('rebuild it again'),
  });
});

test('an abandoned rebuild is deleted with what a newer generation replaces', async () => {
  await (await openSqliteRebuildStore({ folder })).close();
  await (await openSqliteProjectionStore({ folder, atLeast: 2 })).close();
  retireGenerationsBefore(folder, 2);
  expect(files()).toEqual([fileName(2)]);
});

test('a rebuild parks what cannot be applied and says how many', async () => {
  await appendTo(store, 'session-session_1', [sessionStarted('agent_1'), turnCompleted(1)]);
  let parked = 0;
  expect(await rebuild((progress) => (parked = progress.parked))).toBe(true);
  expect(parked).toBe(1);
});

test('the next start takes the rebuilt generation and deletes what it replaces, files of an older schema included', async () => {
  await rebuild(() => undefined);
  await rebuild(() => undefined);
  await writeFile(join(folder, 'read-models', 'v0.7.db'), '');
  expect(files()).toEqual(['v0.7.db', fileName(1), fileName(2)]);
  const projector = await startProjector(folder);
  try {
    expect(await projector.readModels.untilShown((await store.head())!, 20_000)).toBe(true);
    expect(await projector.readModels.agentListVersion('acct_1')).toMatch(/^2\./);
    await projector.readModels.untilShown(await appendAgents(store, EVENTS, EVENTS + 1), 20_000);
    expect(existsSync(join(folder, 'read-models', fileName(1)))).toBe(false);
    expect(existsSync(join(folder, 'read-models', 'v0.7.db'))).toBe(false);
  } finally {
    await projector.close();
  }
  expect(files()).toEqual([fileName(2)]);
});

test('a rebuild ends when the disk is full, and leaves no file', async () => {
  const built = await openSqliteRebuildStore({ folder });
  const sqliteFull = Object.assign(new Error('database or disk is full'), { errcode: 13 });
  let batches = 0;
  const filling = {
    ...built,
    apply: (...batch: Parameters<typeof built.apply>) =>
      (batches += 1) === 2
        ? Promise.reject(storeUnavailableError('Full.', sqliteFull))
        : built.apply(...batch),
  };
  const done = rebuildReadModels({
    log: store,
    store: withReservedSpace(filling, folder, parseFreeLevel('0')),
    signal: AbortSignal.timeout(20_000),
    onProgress: () => undefined,
    logger: recordingLogger().logger,
  });
  await expect(done).rejects.toMatchObject({
    code: 'storage_full',
    message: expect.stringContaining(folder),
  });
  expect(batches).toBe(2);
  expect(files()).toEqual([]);
});
