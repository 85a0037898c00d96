import { rm } from 'node:fs/promises';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { openSqliteEventStore } from '../../../infra/sqlite/eventStore/eventStore.ts';
import { openSqliteProjectionStore } from '../../../infra/sqlite/readModels/projectionStore.ts';
import {
  createGathering,
  type AppliedBatch,
} from '../../../services/followers/projector/projection.ts';
import { runProjection } from '../../../services/followers/projector/run.ts';
import { storeUnavailableError } from '../../../shared/lib/errors/turnlogError.ts';
import type { EventStore, Position, SubscribeOptions } from '../../../shared/ports/eventStore.ts';
import type { ProjectionStore } from '../../../shared/ports/readModels.ts';
import { sessionStarted } from '../../support/builders/events.ts';
import {
  appendAgents,
  appendTo,
  recordingLogger,
} from '../../support/stores/projections/projector.ts';
import { eventually } from '../../support/processes/operator.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

let folder: string;
let log: EventStore;
let store: ProjectionStore;

beforeEach(async () => {
  folder = await temporaryFolder();
  log = await openSqliteEventStore({ folder });
  store = { ...(await openSqliteProjectionStore({ folder })), batchSize: 1_000 };
});

afterEach(async () => {
  await store.close();
  await log.close();
  await rm(folder, { recursive: true });
});

/** Runs the projection until it has reached `goal`. */
async function runUntil(
  goal: Position,
  parts: Partial<{ log: Pick<EventStore, 'subscribe' | 'head'>; store: ProjectionStore }> = {},
) {
  const end = new AbortController();
  const { lines, logger } = recordingLogger();
  const batches: AppliedBatch[] = [];
  await runProjection({
    log,
    store,
    ...parts,
    signal: end.signal,
    logger,
    onProgress(batch) {
      batches.push(batch);
      if (batch.position !== undefined && batch.position >= goal) end.abort();
    },
  });
  return { batches, lines };
}

test('a projection reports an empty log as caught up and then follows what is appended', async () => {
  const end = new AbortController();
  const batches: AppliedBatch[] = [];
  let appended: Promise<Position> | undefined;
  await runProjection({
    log,
    store,
    signal: end.signal,
    logger: recordingLogger().logger,
    onProgress(batch) {
      batches.push(batch);
      appended ??= appendAgents(log, 0, 1);
      if (batch.position !== undefined) end.abort();
    },
  });
  expect(batches).toMatchObject([
    { position: undefined, caughtUp: true, events: 0, percent: 100 },
    { position: await appended, caughtUp: true, events: 1, percent: 100 },
  ]);
});

test('events of sessions are gathered until a batch is requested, and none is overlooked', async () => {
  const HOUR = 3_600_000;
  const end = new AbortController();
  const gathering = createGathering(HOUR);
  const applied: (Position | undefined)[] = [];
  let pauses = 0;
  const append = (id: string) => appendTo(log, `session-session_${id}`, [sessionStarted()]);
  await append('a');
  const running = runProjection({
    log,
    store,
    signal: end.signal,
    logger: recordingLogger().logger,
    gathering: {
      pause(signal) {
        pauses += 1;
        return gathering.pause(signal);
      },
    },
    onProgress({ position }) {
      applied.push(position);
      // Requested while the batch is handled: the pause after it is omitted.
      if (applied.length === 2) gathering.requestBatch();
    },
  });
  // There is no pause after the first batch: it may hold other events, reported by no earlier thread.
  await eventually(
    async () => applied.length,
    (count) => count === 1,
  );
  await append('b');
  await eventually(
    async () => pauses,
    (count) => count === 1,
  );
  const third = await append('c');
  await eventually(
    async () => applied.at(-1),
    (position) => position === third,
  );
  await eventually(
    async () => pauses,
    (count) => count === 2,
  );
  const [fourth, fifth] = [await append('d'), await append('e')];
  expect(applied).not.toContain(fourth);
  gathering.requestBatch();
  await eventually(
    async () => applied.at(-1),
    (position) => position === fifth,
  );
  end.abort();
  await running;
  expect([applied.length, pauses]).toEqual([4, 3]);
});

test('it says where no row of before changed, and never so of what came before it began', async () => {
  const end = new AbortController();
  const told: boolean[] = [];
  await appendTo(log, 'session-session_a', [sessionStarted()]);
  await runProjection({
    log,
    store,
    signal: end.signal,
    logger: recordingLogger().logger,
    onProgress({ keepsKnownRows }) {
      told.push(keepsKnownRows);
      if (told.length === 1) void appendTo(log, 'session-session_b', [sessionStarted()]);
      if (told.length === 2) void appendAgents(log, 0, 1);
      if (told.length === 3) void appendAgents(log, 1, 2, 1);
      if (told.length === 4) end.abort();
    },
  });
  expect(told).toEqual([false, true, true, false]);
});

test('a projection catches up in batches and says how far it is', async () => {
  const { batches } = await runUntil(await appendAgents(log, 0, 1500, 1));
  expect(
    batches.map(({ events, caughtUp, percent }) => [events, caughtUp, Math.round(percent)]),
  ).toEqual([
    [1000, false, 33],
    [2000, false, 67],
    [3000, true, 100],
  ]);
});

test('a projection whose store fails goes on from the checkpoint when the store works again', async () => {
  const goal = await appendAgents(log, 0, 1500, 1);
  let calls = 0;
  const flaky: ProjectionStore = {
    ...store,
    apply(events, checkpoint) {
      calls += 1;
      return calls === 2
        ? Promise.reject(storeUnavailableError('The disk is full.'))
        : store.apply(events, checkpoint);
    },
  };
  const { batches, lines } = await runUntil(goal, { store: flaky });
  expect(lines).toMatchObject([
    { level: 'warn', fields: { err: { message: 'The disk is full.' }, retry_in_ms: 100 } },
  ]);
  expect(batches.map(({ events }) => events)).toEqual([1000, 2000, 3000]);
  expect((await store.checkpoint())?.position).toBe(goal);
});

test('a projection whose subscription breaks or ends subscribes again after its last position', async () => {
  const goal = await appendAgents(log, 0, 1500, 1);
  const starts: SubscribeOptions['after'][] = [];
  const breaking: Pick<EventStore, 'subscribe' | 'head'> = {
    head: () => log.head(),
    async *subscribe(options) {
      starts.push(options.after);
      for await (const batch of log.subscribe(options)) {
        yield batch;
        if (starts.length === 1) throw storeUnavailableError('The connection was lost.');
        if (starts.length === 2) return;
      }
    },
  };
  const { batches, lines } = await runUntil(goal, { log: breaking });
  expect(starts).toMatchObject([
    undefined,
    { position: batches[0]?.position },
    { position: batches[1]?.position },
  ]);
  expect(batches.map(({ events }) => events)).toEqual([1000, 2000, 3000]);
  expect(lines).toHaveLength(2);
});

test('an abort ends a projection that waits for its next attempt', async () => {
  const end = new AbortController();
  const { lines, logger } = recordingLogger();
  const broken = { ...store, checkpoint: () => Promise.reject(storeUnavailableError('Gone.')) };
  const run = runProjection({
    log,
    store: broken,
    signal: end.signal,
    onProgress: () => undefined,
    logger: {
      ...logger,
      warn: (fields, message) => {
        logger.warn(fields, message);
        setImmediate(() => end.abort());
      },
    },
  });
  await run;
  expect(lines).toHaveLength(1);
});
