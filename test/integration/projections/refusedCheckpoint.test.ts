/** Read models in a data folder whose checkpoint is no position of the log. */
import { copyFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { openSqliteEventStore } from '../../../infra/sqlite/eventStore.ts';
import {
  currentGeneration,
  retireGenerationsBefore,
} from '../../../infra/sqlite/readModels/generations.ts';
import { openSqliteProjectionStore } from '../../../infra/sqlite/readModels/projectionStore.ts';
import { openSqliteRebuildStore } from '../../../infra/sqlite/readModels/rebuildStore.ts';
import { followGenerations } from '../../../services/projector/followGenerations.ts';
import { rebuildReadModels } from '../../../services/projector/rebuild.ts';
import { storeUnavailable } from '../../../shared/errors.ts';
import type { EventLog, StoredEvent } from '../../../shared/ports/eventStore.ts';
import { eventually } from '../../support/processes/operator.ts';
import {
  appendAgents,
  recordingLogger,
  startProjector,
} from '../../support/projections/projector.ts';
import { randomHistory } from '../../support/events/randomHistory.ts';
import { agentCreated } from '../../support/events/events.ts';
import { positionOf, recordHistory, reached } from '../../support/events/history.ts';
import {
  BOGUS,
  contentsOf,
  copyFixture,
  filesOf,
  fixedLog,
  leaveCheckpoint,
  storeCheckpoint,
} from '../../support/projections/refusedCheckpoint.ts';
import { startServerProcess, type ServerProcess } from '../../support/processes/serverProcess.ts';
import { apiClient, TEST_KEY } from '../../support/http/service.ts';
import { buildingName, fileName } from '../../support/projections/generationNames.ts';
import { temporaryFolder } from '../../support/sqlite/sqliteEventStore.ts';
import { size } from '../../support/jest/size.ts';

let folder: string;
beforeEach(async () => {
  folder = await temporaryFolder();
});
afterEach(() => rm(folder, { recursive: true }));

/** Follows the log as the projector's thread does, until the current generation has caught up. */
async function catchUp(log: Pick<EventLog, 'head' | 'subscribe'>, place = folder) {
  const end = new AbortController();
  const { lines, logger } = recordingLogger();
  const reasons: string[] = [];
  await followGenerations({
    log,
    logger,
    signal: end.signal,
    generations: {
      open: (atLeast) => openSqliteProjectionStore({ folder: place, atLeast }),
      current: () => currentGeneration(place),
      retireBefore: (generation) => retireGenerationsBefore(place, generation),
    },
    // A turn of the event loop later, so that the batch is dealt with.
    onProgress: ({ caughtUp }) => void (caughtUp && setImmediate(() => end.abort())),
    onHealing: (reason) => reasons.push(reason),
  });
  return { lines, reasons };
}

async function project(events: readonly StoredEvent[], place: string): Promise<void> {
  const store = await openSqliteProjectionStore({ folder: place });
  const last = events.at(-1)?.position;
  if (last !== undefined) await store.apply(events, reached(last));
  await store.close();
}

const agents = (count: number): StoredEvent[] => {
  const { record } = recordHistory();
  return Array.from({ length: count }, (_, index) =>
    record({ stream: `agent-agent_${index}` }, agentCreated()),
  );
};

describe('a service on the data folder that an older version left with the checkpoint 2^64-1', () => {
  let fixture: Awaited<ReturnType<typeof copyFixture>>;
  beforeEach(async () => {
    fixture = await copyFixture(folder);
  });
  afterEach(() => fixture.node.close());

  const start = (): ServerProcess =>
    startServerProcess({
      DATA_DIR: fixture.dataFolder,
      EVENTSTOREDB_URL: fixture.node.connectionString,
      BOOTSTRAP_API_KEY: TEST_KEY,
    });
  const stop = async (server: ServerProcess): Promise<void> => {
    server.kill('SIGTERM');
    expect(await server.exited).toBe(0);
  };

  test('fills read models of its own version with every agent of the log, and deletes the older ones', async () => {
    expect(await filesOf(fixture.readModels)).toEqual(['v2.1.db']);
    const server = start();
    const { data } = (await apiClient(await server.ready, TEST_KEY).get('/v1/agents')).body;
    expect(data).toMatchObject([{ name: 'First' }, { name: 'Second' }]);
    await stop(server);
    expect(await filesOf(fixture.readModels)).toEqual([fileName(1)]);
  });

  test('shows and runs every agent of the log, tells what it did, and is quiet at the next start', async () => {
    // The file was made when its version was this one's.
    await leaveCheckpoint(fixture.readModels, BOGUS);
    const first = start();
    const client = apiClient(await first.ready, TEST_KEY);
    const { data } = (await client.get('/v1/agents')).body;
    expect(data).toMatchObject([{ name: 'First' }, { name: 'Second' }]);
    for (const { agent_id } of data as { agent_id: string }[])
      expect((await client.post(`/v1/agents/${agent_id}/run`, { input: 'Hello' })).status).toBe(
        200,
      );
    expect((await client.get('/health/ready')).body.data).toMatchObject({
      status: 'ready',
      projection: { caught_up: true },
    });
    await stop(first);
    const said = first
      .errors()
      .split('\n')
      .filter((line) => line.includes('built anew'))
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(said).toMatchObject([
      {
        level: 'warn',
        checkpoint: BOGUS,
        end: expect.stringMatching(/^\d{20}\/\d{20}$/),
        msg: expect.stringContaining('built anew from the log'),
      },
      { level: 'info', refused: BOGUS, msg: expect.stringContaining('healed') },
    ]);
    expect(await filesOf(fixture.readModels)).toEqual([fileName(2)]);

    const second = start();
    expect(
      (await apiClient(await second.ready, TEST_KEY).get('/v1/agents')).body.data,
    ).toHaveLength(2);
    await stop(second);
    expect(second.errors()).not.toMatch(/built anew|refuses|"warn"/);
  });
});

describe('a projection in a data folder', () => {
  test('builds the rows of a fresh projection, for any history and any checkpoint that no log can have', async () => {
    const impossible = fc.bigInt({ min: 2n ** 63n, max: 2n ** 64n - 1n }).map(String);
    const checkpoints = fc.oneof(
      fc.constant(BOGUS),
      impossible.map((number) => `${number.padStart(20, '0')}/${number.padStart(20, '0')}`),
      fc.string({ minLength: 1 }).filter((text) => !/^[\d/]+$/.test(text)),
    );
    let runs = 0;
    await fc.assert(
      fc.asyncProperty(
        randomHistory('').chain((events) =>
          fc.tuple(fc.constant(events), fc.nat(events.length), checkpoints),
        ),
        async ([events, projected, checkpoint]) => {
          const [broken, fresh] = [
            join(folder, `broken-${(runs += 1)}`),
            join(folder, `fresh-${runs}`),
          ];
          await project(events.slice(0, projected), broken);
          await leaveCheckpoint(broken, checkpoint);
          const { reasons } = await catchUp(fixedLog(events), broken);
          expect(reasons).toEqual([expect.stringContaining(checkpoint)]);
          await catchUp(fixedLog(events), fresh);
          expect(contentsOf(broken)).toEqual(contentsOf(fresh));
          expect(await filesOf(broken)).toEqual([fileName(2)]);
        },
      ),
      { numRuns: size({ small: 10, full: 25 }) },
    );
  });

  test('looks three times over five seconds at a checkpoint beyond the end before it rebuilds', async () => {
    const events = agents(3);
    await project(events.slice(0, 1), folder);
    storeCheckpoint(folder, positionOf(9));
    const began = performance.now();
    const { lines } = await catchUp(fixedLog(events));
    expect(performance.now() - began).toBeGreaterThan(4_900);
    expect(lines.map(({ level, message }) => [level, message])).toEqual([
      ['warn', 'The log refuses the checkpoint of the read models; it is looked at again'],
      [
        'warn',
        'The read models are built anew from the log: ' +
          `their checkpoint ${positionOf(9)} is no place of the log, which ends at ${positionOf(3)}`,
      ],
      ['info', 'The read models are healed: they were built anew from the log'],
    ]);
    expect(contentsOf(folder)['agents']).toHaveLength(3);
  });

  test('rebuilds where the log has grown past the checkpoint while that was looked at', async () => {
    const events = agents(7);
    // The log ended at 2, and its checkpoint was 4: nothing of what is there at 3 and 4 now was
    // ever projected.
    await project(events.slice(0, 2), folder);
    storeCheckpoint(folder, positionOf(4));
    let looks = 0;
    const { reasons, lines } = await catchUp({
      ...fixedLog(events),
      subscribe: (options) =>
        fixedLog((looks += 1) === 1 ? events.slice(0, 2) : events).subscribe(options),
    });
    expect(reasons).toEqual([
      expect.stringMatching(`${positionOf(4)} was no place of the log, .* before it grew`),
    ]);
    expect(lines.at(-1)?.message).toContain('healed');
    expect(contentsOf(folder)).toMatchObject({
      checkpoint: [{ position: positionOf(7) }],
      agents: { length: 7 },
    });
  });

  test('starts its looks over after any other failure, and is certain after three in a row', async () => {
    const events = agents(3);
    await project(events.slice(0, 1), folder);
    storeCheckpoint(folder, positionOf(9));
    let calls = 0;
    let restored = 0;
    const { lines } = await catchUp({
      ...fixedLog(events),
      async *subscribe(options) {
        calls += 1;
        if (calls === 3) throw storeUnavailable('away');
        if (calls === 4) restored = performance.now();
        yield* fixedLog(events).subscribe(options);
      },
    });
    expect(performance.now() - restored).toBeGreaterThan(4_900);
    expect(lines.map(({ message }) => message)).toEqual([
      expect.stringContaining('it is looked at again'),
      expect.stringContaining('The projection failed'),
      expect.stringContaining('it is looked at again'),
      expect.stringContaining('built anew'),
      expect.stringContaining('healed'),
    ]);
  });

  test('shows through the read models nothing of the distrusted generation at the start, and why while it lasts', async () => {
    const store = await openSqliteEventStore({ folder });
    await appendAgents(store, 0, 2_000, 1);
    await leaveCheckpoint(folder, BOGUS);
    const projector = await startProjector(folder);
    const seen: { healing: string | undefined; caughtUp: boolean; answered: boolean }[] = [];
    const unsubscribe = projector.thread.progress.subscribe(({ caughtUp }) => {
      const healing = projector.thread.healing();
      void projector.readModels.listAgents('acct_1', {}).then(
        (found) => seen.push({ healing, caughtUp, answered: found.length === 2_000 }),
        () => seen.push({ healing, caughtUp, answered: false }),
      );
    });
    try {
      expect(await projector.readModels.untilShown((await store.head())!, 20_000)).toBe(true);
      await eventually(
        async () => seen.at(-1)?.caughtUp,
        (caughtUp) => caughtUp === true,
      );
      expect(seen.slice(0, -1)).toContainEqual({
        healing: expect.stringContaining(BOGUS),
        caughtUp: false,
        answered: false,
      });
      expect(seen.every(({ caughtUp, answered }) => caughtUp === answered)).toBe(true);
      expect(projector.thread.healing()).toBeUndefined();
    } finally {
      unsubscribe();
      await projector.close();
      await store.close();
    }
  });

  test('killed in the middle of a rebuild, ends with whole read models after the next start', async () => {
    const dataFolder = join(folder, 'data');
    const store = await openSqliteEventStore({ folder: dataFolder });
    for (let from = 0; from < 12_000; from += 2_000)
      await appendAgents(store, from, from + 2_000, 2);
    await store.close();
    let interrupted = 0;
    // Where this process is too slow the healing is over before the kill: then once more.
    while (interrupted < 3) {
      if (interrupted === 0) {
        await rm(join(dataFolder, 'read-models'), { recursive: true, force: true });
        await leaveCheckpoint(dataFolder, BOGUS);
      }
      const server = startServerProcess({ DATA_DIR: dataFolder, BOOTSTRAP_API_KEY: TEST_KEY });
      await eventually(
        async () => currentGeneration(dataFolder),
        (generation) => generation === 2,
      );
      server.kill('SIGKILL');
      await server.exited;
      interrupted = /the service is up|healed/.test(server.errors()) ? 0 : interrupted + 1;
    }
    const server = startServerProcess({ DATA_DIR: dataFolder, BOOTSTRAP_API_KEY: TEST_KEY });
    await server.ready;
    server.kill('SIGTERM');
    await server.exited;
    expect(await filesOf(dataFolder)).toEqual([fileName(2)]);
    const healed = contentsOf(dataFolder);
    await rm(join(dataFolder, 'read-models'), { recursive: true });
    const again = await openSqliteEventStore({ folder: dataFolder });
    await catchUp(again, dataFolder);
    await again.close();
    expect(contentsOf(dataFolder)).toEqual(healed);
    expect(healed['agents']).toHaveLength(12_000);
  });
});

describe('a rebuild in a data folder', () => {
  const rebuild = async (log: Pick<EventLog, 'head' | 'subscribe'>) => {
    const { lines, logger } = recordingLogger();
    expect(
      await rebuildReadModels({
        log,
        store: await openSqliteRebuildStore({ folder }),
        signal: new AbortController().signal,
        onProgress: () => undefined,
        logger,
      }),
    ).toBe(true);
    return lines;
  };

  test('that was interrupted with such a checkpoint starts over', async () => {
    const events = agents(4);
    await project(events.slice(0, 2), folder);
    storeCheckpoint(folder, BOGUS);
    await copyFile(
      join(folder, 'read-models', fileName(1)),
      join(folder, 'read-models', buildingName(2)),
    );
    const lines = await rebuild(fixedLog(events));
    expect(lines).toMatchObject([
      {
        level: 'warn',
        fields: { checkpoint: BOGUS, end: positionOf(4) },
        message: expect.stringContaining('begins anew'),
      },
    ]);
    expect(await filesOf(folder)).toEqual([fileName(1), fileName(2)]);
    expect(contentsOf(folder)).toMatchObject({
      checkpoint: [{ position: positionOf(4) }],
      agents: { length: 4 },
    });
    expect((await catchUp(fixedLog(events))).lines).toEqual([]);
  });

  test('replaces a generation with such a checkpoint at once', async () => {
    await project(agents(1), folder);
    storeCheckpoint(folder, BOGUS);
    expect(await rebuild(fixedLog(agents(2)))).toEqual([]);
    expect(contentsOf(folder)['agents']).toHaveLength(2);
  });
});
