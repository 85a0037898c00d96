import { existsSync, readdirSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { openSqliteEventLog } from '../../../infra/sqlite/eventStore/log.ts';
import { openSqliteEventStore } from '../../../infra/sqlite/eventStore/eventStore.ts';
import { openSqliteRebuildStore } from '../../../infra/sqlite/readModels/rebuildStore.ts';
import { rebuildReadModels } from '../../../services/followers/projector/rebuild.ts';
import { appendEvents, NO_STREAM } from '../../../shared/eventlog/append.ts';
import { commitEventTexts } from '../../../shared/eventlog/encryption/sealTexts.ts';
import type { EventStore, Position } from '../../../shared/ports/eventStore.ts';
import type { ProjectionProgress } from '../../../shared/projections/progress.ts';
import {
  agentId,
  appendAgents,
  appendTo,
  newEvent,
  recordingLogger,
  startProjector,
} from '../../support/stores/projections/projector.ts';
import { eventually } from '../../support/processes/operator.ts';
import { at, sessionStarted, turnCompleted, turnStarted } from '../../support/builders/events.ts';
import { memoryKeys } from '../../support/fakes/memoryKeys.ts';
import { fileName } from '../../support/stores/projections/generationNames.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';
import { agentsOf } from '../../support/stores/projections/agentsOf.ts';
import { AUTHORSHIP } from '../../support/builders/authorship.ts';

type Projector = Awaited<ReturnType<typeof startProjector>>;

const WAIT_MS = 20_000;
let folder: string;
let store: EventStore;
let projector: Projector | undefined;

beforeEach(async () => {
  folder = await temporaryFolder();
  store = await openSqliteEventStore({ folder });
});

afterEach(async () => {
  await projector?.close();
  projector = undefined;
  await store.close();
  await rm(folder, { recursive: true });
});

async function start(): Promise<Projector> {
  projector = await startProjector(folder);
  return projector;
}

/** Resolves with the first progress that the condition holds for. */
const progressThat = (
  { thread }: Projector,
  condition: (progress: ProjectionProgress) => boolean,
): Promise<ProjectionProgress> =>
  new Promise((resolve) => {
    const unsubscribe = thread.progress.subscribe((progress) => {
      if (!condition(progress)) return;
      resolve(progress);
      setImmediate(() => unsubscribe());
    });
  });

const filesOf = (): string[] =>
  readdirSync(join(folder, 'read-models')).filter((name) => name.endsWith('.db'));

async function rebuildBeside(): Promise<boolean> {
  const log = openSqliteEventLog({ folder });
  try {
    return await rebuildReadModels({
      log,
      store: await openSqliteRebuildStore({ folder }),
      signal: AbortSignal.timeout(WAIT_MS),
      onProgress: () => undefined,
      logger: recordingLogger().logger,
    });
  } finally {
    await log.close();
  }
}

test('an appended event is in the rows when the wait for its position resolves', async () => {
  const { readModels, thread } = await start();
  for (let index = 0; index < 50; index += 1) {
    expect(await readModels.untilShown(await appendAgents(store, index, index + 1), WAIT_MS)).toBe(
      true,
    );
    expect(await readModels.findAgent(agentId(index))).toBeDefined();
  }
  expect(thread.caughtUp()).toBe(true);
});

test('the thread is sent one request for the next batch, however many readers wait for it', async () => {
  const { readModels, workers, thread } = await start();
  await readModels.untilShown(await appendAgents(store, 0, 1), WAIT_MS);
  const sent = jest.spyOn(workers[0]!, 'postMessage');
  const position = await appendTo(store, 'session-session_1', [sessionStarted(agentId(0))]);
  const isNews = new Promise<void>((resolve) => {
    const unsubscribe = thread.progress.subscribe((progress) => {
      if (progress.position !== position) return;
      resolve();
      setImmediate(() => unsubscribe());
    });
  });
  const later = `${Number(position) + 1}`.padStart(position.length, '0') as Position;
  const waiting = [position, later].map((wanted) => readModels.untilShown(wanted, WAIT_MS));
  await isNews;
  const requests = sent.mock.calls.length;
  expect(requests).toBeGreaterThan(0);
  expect(sent.mock.calls.every(([request]) => request === 'apply')).toBe(true);
  void readModels.untilShown(later, WAIT_MS);
  expect(sent.mock.calls).toHaveLength(requests);
  await appendTo(store, 'session-session_2', [sessionStarted(agentId(0))]);
  expect(await Promise.all(waiting)).toEqual([true, true]);
});

/** The words of the turns in the index file, each turn as one text of tokens. */
function indexedWords(): string[] {
  const file = new DatabaseSync(join(folder, 'read-models', filesOf()[0]!), { readOnly: true });
  try {
    return file
      .prepare('SELECT words FROM turn_words')
      .all()
      .map(({ words }) => words as string);
  } finally {
    file.close();
  }
}

test('texts that this process has appended are indexed without their keys', async () => {
  const { readModels, thread } = await start();
  const conversation = [sessionStarted(agentId(0)), turnStarted(1), turnCompleted(1)];
  const { keys } = memoryKeys();
  const appendSealed = async (stream: string, isShared: boolean): Promise<Position> => {
    const { events } = await commitEventTexts(keys, undefined, conversation.map(newEvent));
    const texts = events.flatMap(({ toClose }) => toClose?.texts ?? []);
    if (isShared) thread.sendTexts(texts.map(({ sha256, text }) => [stream, sha256, text]));
    // The thread has what was sent before, so that the index can't be quicker.
    const agent = Number(isShared);
    await readModels.untilShown(await appendAgents(store, agent, agent + 1), WAIT_MS);
    const authorship = { ...AUTHORSHIP, recorded_at: at(0) };
    return (await appendEvents(store, { stream, head: NO_STREAM }, { events, authorship }))
      .position;
  };
  await appendSealed('session-session_1', true);
  const last = await appendSealed('session-session_2', false);
  const isIndexed = async (): Promise<boolean> =>
    (await readModels.indexProgress()).indexed === last;
  expect(await eventually(isIndexed, (indexed) => indexed)).toBe(true);
  // question, answer, 1 and the beginnings: the keys of both sessions are in no key store.
  expect(indexedWords().map((words) => words.match(/\w+/g)?.length)).toEqual([13, undefined]);
});

test('a search that waits for the index requests the next step', async () => {
  const { readModels, workers } = await start();
  const sent = jest.spyOn(workers[0]!, 'postMessage');
  const isRequested = (): boolean => sent.mock.calls.some(([request]) => request === 'index');
  for (let n = 1; n <= 10 && !isRequested(); n += 1) {
    const position = await appendTo(store, `session-session_${n}`, [
      sessionStarted(agentId(0)),
      turnStarted(1),
      turnCompleted(1),
    ]);
    await readModels.untilShown(position, WAIT_MS);
    await readModels.indexProgress();
  }
  expect(isRequested()).toBe(true);
});

test('a thread that dies is started again and goes on where it was', async () => {
  const running = await start();
  const { readModels, workers, lines, thread } = running;
  await readModels.untilShown(await appendAgents(store, 0, 10), WAIT_MS);
  await workers[0]?.terminate();
  expect(await agentsOf(readModels)).toHaveLength(10);
  const position = await appendAgents(store, 10, 20, 1);
  expect(await readModels.untilShown(position, WAIT_MS)).toBe(true);
  expect(await agentsOf(readModels)).toHaveLength(20);
  expect(workers).toHaveLength(2);
  expect(lines.filter(({ level }) => level === 'error').map(({ message }) => message)).toEqual([
    "The projector's thread died and is started again",
  ]);
  expect(thread.caughtUp()).toBe(true);
});

test('a thread that is dead is not caught up', async () => {
  const { workers, thread } = await start();
  const died = new Promise((resolve) => workers[0]?.once('exit', resolve));
  await Promise.all([died, workers[0]?.terminate()]);
  await new Promise(setImmediate);
  expect(thread.caughtUp()).toBe(false);
  expect(thread.trouble()).toEqual({
    sinceMs: expect.any(Number),
    reason: expect.stringContaining('thread ended'),
  });
});

test('read models that are locked are told with the reason, until they follow the log again', async () => {
  const { readModels, thread } = await start();
  await readModels.untilShown(await appendAgents(store, 0, 1), WAIT_MS);
  expect(thread.trouble()).toBeUndefined();
  const other = new DatabaseSync(join(folder, 'read-models', fileName(1)), { timeout: 5_000 });
  other.exec('BEGIN IMMEDIATE');
  const position = await appendAgents(store, 1, 2);
  const trouble = await eventually(
    async () => thread.trouble(),
    (told) => told !== undefined,
  );
  expect([trouble!.reason, thread.caughtUp()]).toEqual(['database is locked', false]);
  await eventually(
    async () => thread.trouble()!.sinceMs,
    (sinceMs) => sinceMs > trouble!.sinceMs,
  );
  other.exec('ROLLBACK');
  other.close();
  expect(await readModels.untilShown(position, WAIT_MS)).toBe(true);
  expect([thread.trouble(), thread.caughtUp()]).toEqual([undefined, true]);
});

test('a rebuild beside it replaces the read models; no query fails, goes back or misses an acknowledged write', async () => {
  const running = await start();
  const { readModels } = running;
  await readModels.untilShown(await appendAgents(store, 0, 2000, 2), WAIT_MS);
  const switched = progressThat(running, ({ generation }) => generation === 2);
  const done = new AbortController();
  let created = 2000;
  async function work(): Promise<void> {
    while (!done.signal.aborted) {
      expect(
        await readModels.untilShown(await appendAgents(store, created, created + 1), WAIT_MS),
      ).toBe(true);
      created += 1;
      expect(await agentsOf(readModels)).toHaveLength(created);
    }
  }
  const working = work();
  expect(await rebuildBeside()).toBe(true);
  await switched;
  done.abort();
  await working;
  expect(created).toBeGreaterThan(2000);
  expect(await readModels.agentListVersion('acct_1')).toMatch(/^2\./);
  // The older generation is deleted before the next event is applied.
  await readModels.untilShown(await appendAgents(store, created, created + 1), WAIT_MS);
  expect(filesOf()).toEqual([fileName(2)]);
});

test('the read models are rebuilt from the log when their folder was deleted while nothing ran', async () => {
  const first = await start();
  await first.readModels.untilShown(await appendAgents(store, 0, 300, 1), WAIT_MS);
  const before = await agentsOf(first.readModels);
  await first.close();
  await rm(join(folder, 'read-models'), { recursive: true });
  const { readModels } = await start();
  expect(await readModels.untilShown((await store.head())!, WAIT_MS)).toBe(true);
  expect(await agentsOf(readModels)).toEqual(before);
});

test('read models that are deleted under a running projector are rebuilt, and queries are answered all the while', async () => {
  const running = await start();
  const { readModels } = running;
  await readModels.untilShown(await appendAgents(store, 0, 100), WAIT_MS);
  const replaced = progressThat(
    running,
    ({ generation, caughtUp }) => generation === 2 && caughtUp,
  );
  await rm(join(folder, 'read-models'), { recursive: true });
  expect(await agentsOf(readModels)).toHaveLength(100);
  await replaced;
  expect(await readModels.untilShown(await appendAgents(store, 100, 101), WAIT_MS)).toBe(true);
  expect(await agentsOf(readModels)).toHaveLength(101);
  expect(existsSync(join(folder, 'read-models', fileName(2)))).toBe(true);
});

test('a stream with an event that cannot be applied is parked, logged and listed, and the rest goes on', async () => {
  const { readModels, lines } = await start();
  await appendTo(store, 'session-session_1', [sessionStarted('agent_1'), turnCompleted(1)]);
  expect(await readModels.untilShown(await appendAgents(store, 0, 1), WAIT_MS)).toBe(true);
  expect(await readModels.findAgent(agentId(0))).toBeDefined();
  expect((await readModels.listParkedStreams(9)).streams).toMatchObject([
    { stream: 'session-session_1', revision: 1 },
  ]);
  expect(lines.filter(({ level }) => level === 'error')).toMatchObject([
    { fields: { stream: 'session-session_1', event_type: 'session.turn_completed.v1' } },
  ]);
});

test('starting fails when the read models cannot be opened at all', async () => {
  await writeFile(join(folder, 'read-models'), 'a file where a folder is due');
  await expect(startProjector(folder)).rejects.toThrow();
});
