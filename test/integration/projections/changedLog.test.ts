/** Read models in a data folder whose checkpoint the log does not hold. */
import { copyFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import {
  currentGeneration,
  retireGenerationsBefore,
} from '../../../infra/sqlite/readModels/generations.ts';
import { openSqliteProjectionStore } from '../../../infra/sqlite/readModels/projectionStore.ts';
import { openSqliteRebuildStore } from '../../../infra/sqlite/readModels/rebuildStore.ts';
import { followGenerations } from '../../../services/followers/projector/followGenerations.ts';
import { rebuildReadModels } from '../../../services/followers/projector/rebuild.ts';
import { storeUnavailableError } from '../../../shared/lib/errors/turnlogError.ts';
import type { StoredEvent } from '../../../shared/ports/eventStore.ts';
import { agentCreated, restoreAccepted } from '../../support/builders/events.ts';
import { positionOf, recordHistory } from '../../support/builders/history.ts';
import { buildingName, fileName } from '../../support/stores/projections/generationNames.ts';
import { recordingLogger } from '../../support/stores/projections/projector.ts';
import { contentsOf, filesOf } from '../../support/stores/projections/readModelFiles.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';
import { fixedLog, type FixedLog } from '../../support/fakes/fixedLog.ts';
import { skipPauses } from '../../support/fakes/jumpingClock.ts';

skipPauses();

let folder: string;
beforeEach(async () => {
  folder = await temporaryFolder();
});
afterEach(() => rm(folder, { recursive: true }));

/** A log of so many agents; no two have an event in common. */
const agents = (count: number): StoredEvent[] => {
  const { record } = recordHistory();
  return Array.from({ length: count }, (_, index) =>
    record({ stream: `agent-agent_${index}` }, agentCreated()),
  );
};

/** The same log, declared to stand for others. */
function declaredFor(events: readonly StoredEvent[], replaces: string[]): StoredEvent[] {
  const { record } = recordHistory(events.length);
  return [...events, record({ stream: `log-${events[0]!.id}` }, restoreAccepted(replaces))];
}

/**
 * Follows the log as the projector's thread does, until it has caught up, or has told so often that
 * the log has changed.
 */
async function follow(log: FixedLog, refusals = 1) {
  const end = new AbortController();
  const { lines, logger } = recordingLogger();
  const healing: string[] = [];
  const told: (string | undefined)[] = [];
  await followGenerations({
    log,
    logger,
    signal: end.signal,
    generations: {
      open: (atLeast) => openSqliteProjectionStore({ folder, atLeast }),
      current: () => currentGeneration(folder),
      retireBefore: (generation) => retireGenerationsBefore(folder, generation),
    },
    // A turn of the event loop later, so that the batch is dealt with.
    onProgress: ({ caughtUp }) => void (caughtUp && setImmediate(() => end.abort())),
    report({ type, reason }) {
      if (type === 'healing') healing.push(reason!);
      if (type !== 'log_changed') return;
      told.push(reason);
      if (told.filter((found) => found !== undefined).length === refusals) end.abort();
    },
  });
  return { lines, healing, told };
}

/** A log whose subscriptions go, one after the other, to these; the last one stays. */
function oneByOne(...logs: (FixedLog | Error)[]): FixedLog & { begun: () => number } {
  let begun = 0;
  return {
    ...(logs.findLast((log) => !(log instanceof Error)) as FixedLog),
    begun: () => begun,
    async *subscribe(options) {
      const log = logs[Math.min(begun, logs.length - 1)]!;
      begun += 1;
      if (log instanceof Error) throw log;
      yield* log.subscribe(options);
    },
  };
}

describe('a projection in a data folder', () => {
  const [known, other] = [agents(3), agents(5)];
  beforeEach(() => follow(fixedLog(known)));

  test.each([
    ['another log', other],
    ['a shorter log', known.slice(0, 2)],
    ['an empty log', []],
  ])('refuses %s, names the event that is not there, and changes nothing', async (_, events) => {
    const before = contentsOf(folder);
    const { told, lines } = await follow(fixedLog(events));
    expect(told).toEqual([expect.stringContaining(known[2]!.id)]);
    expect(told[0]).toContain('log accept-restored');
    expect(lines).toMatchObject([{ level: 'error', message: expect.stringContaining(told[0]!) }]);
    expect(contentsOf(folder)).toEqual(before);
    expect(await filesOf(folder)).toEqual([fileName(1)]);
  });

  test('believes a log that has changed when it is so twice in a row, for a node may have fallen behind', async () => {
    const [right, wrong] = [fixedLog(known), fixedLog(other)];
    const away = storeUnavailableError('away');
    const once = await follow(oneByOne(wrong, right));
    expect(once).toMatchObject({ told: [undefined], lines: [] });
    const log = oneByOne(wrong, away, wrong, right);
    const twice = await follow(log, 2);
    expect(log.begun()).toBe(4);
    expect(twice.told).toEqual([expect.stringContaining('has changed'), undefined]);
  });

  test('looks again at a log that it refuses, and goes on when it is the right one', async () => {
    const [right, wrong] = [fixedLog([...known, ...agents(4).slice(3)]), fixedLog(other)];
    const { told, lines, healing } = await follow(oneByOne(wrong, wrong, wrong, right), 2);
    expect(told).toEqual([expect.stringContaining('has changed'), undefined]);
    expect(lines.map(({ level }) => level)).toEqual(['error', 'info']);
    expect(healing).toEqual([]);
    expect(contentsOf(folder)).toMatchObject({ agents: { length: 4 } });
    expect(await filesOf(folder)).toEqual([fileName(1)]);
  });

  test('is built anew from a log that was declared, and tells what it did; the next start is quiet', async () => {
    const log = fixedLog(declaredFor(other, [known[0]!.id]));
    const { told, healing, lines } = await follow(log);
    expect(told).toEqual([undefined]);
    expect(healing).toEqual([expect.stringContaining(known[2]!.id)]);
    expect(lines).toMatchObject([
      {
        level: 'warn',
        fields: { generation: 2 },
        message: expect.stringContaining('are being rebuilt from the log'),
      },
      { level: 'info', message: expect.stringContaining('can be trusted again') },
    ]);
    expect(await filesOf(folder)).toEqual([fileName(2)]);
    expect(contentsOf(folder)).toMatchObject({
      checkpoint: [{ position: positionOf(6), log_id: (await log.eventAt(positionOf(6)))?.id }],
      agents: { length: 5 },
    });
    expect(await follow(log)).toEqual({ told: [undefined], healing: [], lines: [] });
  });

  test('refuses a log that was declared to stand for another one only', async () => {
    const { told } = await follow(fixedLog(declaredFor(other, ['another log'])));
    expect(told).toEqual([expect.stringContaining(`of the log ${known[0]!.id}`)]);
  });
});

describe('a rebuild in a data folder', () => {
  const rebuild = async (log: FixedLog) => {
    const { lines, logger } = recordingLogger();
    const store = await openSqliteRebuildStore({ folder });
    const signal = new AbortController().signal;
    const done = rebuildReadModels({ log, store, signal, onProgress: () => undefined, logger });
    expect(await done).toBe(true);
    return lines;
  };

  test.each([
    ['has changed', (events: StoredEvent[]) => events],
    ['was declared', (events: StoredEvent[], known: string) => declaredFor(events, [known])],
  ])('that was interrupted begins anew where the log %s', async (_, make) => {
    const known = agents(2);
    await follow(fixedLog(known));
    const file = (name: string): string => join(folder, 'read-models', name);
    await copyFile(file(fileName(1)), file(buildingName(2)));
    const log = fixedLog(make(agents(4), known[0]!.id));
    expect((await rebuild(log)).at(-1)).toMatchObject({
      level: 'warn',
      message: expect.stringContaining('starts over'),
    });
    expect(contentsOf(folder)['agents']).toHaveLength(4);
    // Whoever rebuilds wants the log as it is.
    expect(await follow(log)).toMatchObject({ healing: [], lines: [] });
  });
});
