import { mkdtemp, rm } from 'node:fs/promises';
import type { DatabaseSync } from 'node:sqlite';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { openGenerationFile } from '../../../infra/sqlite/readModels/generationFile.ts';
import { projectionStoreOn } from '../../../infra/sqlite/readModels/projectionStore.ts';
import { VERSION } from '../../../infra/sqlite/readModels/schema.ts';
import { rowDecoder, type SqliteRow } from '../../../infra/sqlite/readModels/statements.ts';
import type { DomainEvent } from '../../../shared/eventlog/eventTypes.ts';
import { createCheckpoint } from '../../../shared/eventlog/identity/logIdentity.ts';
import type { Checkpoint, StoredEvent } from '../../../shared/ports/eventStore.ts';
import type { AppliedUpTo } from '../../../shared/ports/readModels.ts';
import { fold, rowMaps } from '../../../shared/projections/fold.ts';
import { planBatch } from '../../../shared/projections/plan.ts';
import { TABLES, tableNames } from '../../../shared/readModels/tables.ts';
import {
  replayStarted,
  restoreAccepted,
  sessionDescribed,
  sessionErased,
  sessionStarted,
  turnCompleted,
  turnStarted,
} from '../../support/builders/events.ts';
import { positionOf, recordHistory } from '../../support/builders/history.ts';
import { size } from '../../support/jest/size.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'turnlog-parts-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const reachedAt = (event: StoredEvent, log_id = 'log_1'): AppliedUpTo => ({
  position: event.position,
  checkpoint: createCheckpoint({ root: log_id, declarations: [] }, event),
});

let files = 0;

/** A store over a new file, whose commits are counted. The one with the number `failing` fails. */
function openStore() {
  files += 1;
  const options = {
    folder,
    file: join(folder, 'read-models', `${files}.db`),
    exclusive: true,
    version: VERSION,
  };
  const database = openGenerationFile(options);
  const commits: { changes: number; checkpoint: Checkpoint; position: string }[] = [];
  const failures = { failing: Infinity };
  const changesOf = (): number =>
    Number(database.prepare('SELECT total_changes() AS changes').get()!['changes']);
  let before = changesOf();
  const counted: DatabaseSync = new Proxy(database, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      const call = value.bind(target) as (...args: unknown[]) => unknown;
      if (name !== 'exec') return call;
      return (sql: string) => {
        if (sql === 'COMMIT') {
          if (commits.length === failures.failing) throw new Error('the disk is full');
          const { position, ...row } = database.prepare('SELECT * FROM checkpoint').get()!;
          const { log_id, event_position, event_id, event_hash } = row;
          commits.push({
            changes: changesOf() - before,
            checkpoint: { log_id, position: event_position, event_id, event_hash } as Checkpoint,
            position: position as string,
          });
          before = changesOf();
        }
        return call(sql);
      };
    },
  });
  const store = projectionStoreOn(counted, options);
  const select = (table: string): SqliteRow[] => database.prepare(`SELECT * FROM ${table}`).all();
  return {
    ...store,
    commits,
    failures,
    /** All rows and the parked streams. */
    content: () => ({
      rows: Object.fromEntries(
        tableNames.map((table) => [table, sorted(select(table).map(rowDecoder(TABLES[table])))]),
      ),
      parked: sorted(select('parked_streams')),
    }),
  };
}

const sorted = (rows: Iterable<unknown>): unknown[] =>
  [...rows]
    .map((row) =>
      Object.fromEntries(Object.entries(row as object).toSorted(([a], [b]) => (a < b ? -1 : 1))),
    )
    .toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));

/** The rows and parked streams of the events in one transaction. */
function contentOf(events: readonly StoredEvent[]) {
  const rows = rowMaps();
  const { parked } = fold(planBatch(events), rows, new Set());
  return {
    rows: Object.fromEntries(tableNames.map((table) => [table, sorted(rows[table].values())])),
    parked: sorted(parked),
  };
}

const labels = (value: string, count = 32): Record<string, string> =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`label_${index}`, value]));

const SESSIONS = 5;
const step: fc.Arbitrary<DomainEvent> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc
      .tuple(fc.constantFrom('1', '2'), fc.nat(4))
      .map(([value, count]) => sessionDescribed(labels(value, count))),
  },
  { weight: 3, arbitrary: fc.constant(turnStarted(1)) },
  { weight: 3, arbitrary: fc.constant(turnCompleted(1)) },
  { weight: 1, arbitrary: fc.constant(sessionErased()) },
);

/** Events of some sessions that make several parts. Some cannot be applied, and park their stream. */
const histories = fc
  .array(fc.tuple(fc.nat(SESSIONS - 1), step), { minLength: 70, maxLength: 120 })
  .map((steps) => {
    const { record } = recordHistory();
    const streams = Array.from({ length: SESSIONS }, (_, index) => ({
      stream: `session-session_${index}`,
    }));
    return [
      ...streams.map((stream) => record(stream, sessionStarted())),
      ...steps.map(([session, event]) => record(streams[session]!, event)),
    ];
  });

test('a batch in parts gives the rows and the checkpoint of one transaction, and of one event at a time, also when it fails between', async () => {
  await fc.assert(
    fc.asyncProperty(histories, fc.nat(3), fc.boolean(), async (events, failing, again) => {
      const expected = contentOf(events);
      const end = reachedAt(events.at(-1)!);

      const single = openStore();
      for (const event of events) await single.apply([event], reachedAt(event));
      expect(single.content()).toEqual(expected);
      await single.close();

      const parts = openStore();
      parts.failures.failing = failing;
      const failed = await parts.apply(events, end).then(
        () => false,
        () => true,
      );
      const { position } = (await parts.checkpoint()) ?? { position: positionOf(0) };
      const applied = events.filter((event) => event.position <= position);
      expect(parts.content()).toEqual(contentOf(applied));
      for (const { checkpoint, position: shown } of parts.commits) {
        expect(shown).toBe(checkpoint.position);
        const last = events.find((event) => event.position === shown)!;
        expect(checkpoint).toEqual(reachedAt(last).checkpoint);
      }
      expect(failed).toBe(applied.length < events.length);
      expect(parts.commits.length).toBeGreaterThanOrEqual(Math.min(failing, 2));

      parts.failures.failing = Infinity;
      await parts.apply(again ? events : events.slice(applied.length), end);
      expect(parts.content()).toEqual(expected);
      expect(await parts.checkpoint()).toEqual(end.checkpoint);
      await parts.close();
    }),
    { numRuns: size({ small: 12, full: 60 }) },
  );
});

test('250 events of 32 labels are no longer one transaction, and a new title rewrites no label', async () => {
  const { record } = recordHistory();
  const store = openStore();
  const ofAll = (event: DomainEvent) =>
    Array.from({ length: 250 }, (_, index) => record({ stream: `session-s_${index}` }, event));
  async function changesAfter(event: DomainEvent) {
    const before = store.commits.length;
    const events = ofAll(event);
    expect(await store.apply(events, reachedAt(events.at(-1)!))).toEqual([]);
    return store.commits.slice(before).map(({ changes }) => changes);
  }
  const sum = (counts: number[]): number => counts.reduce((total, count) => total + count, 0);
  expect(await changesAfter(sessionStarted())).toHaveLength(1);
  const added = await changesAfter(sessionDescribed(labels('1')));
  expect(added.length).toBeGreaterThanOrEqual(8);
  expect(Math.max(...added)).toBeLessThan(1_100);
  expect(sum(added)).toBeGreaterThanOrEqual(250 * 33);
  expect(sum(await changesAfter(sessionDescribed(labels('1'), 'A title')))).toBeLessThan(300);
  const changed = await changesAfter(sessionDescribed({ ...labels('1'), label_0: '2' }));
  expect(sum(changed)).toBeLessThan(800);
  await store.close();
});

test('an event that changes more rows than a part is one part, with those before and behind in others', async () => {
  const { record } = recordHistory();
  const store = openStore();
  const sessions = Array.from({ length: 1_200 }, (_, index) => ({
    session_id: `session_${index}`,
    revision: 3,
    turns: 1,
  }));
  const events = [
    record({ stream: 'session-s_1' }, sessionStarted()),
    record({ stream: 'replay-r_1' }, replayStarted({ sessions })),
    record({ stream: 'session-s_2' }, sessionStarted()),
  ];
  await store.apply(events, reachedAt(events.at(-1)!));
  expect(store.commits.map(({ position }) => position)).toEqual([1, 2, 3].map(positionOf));
  expect(store.content()).toEqual(contentOf(events));
  await store.close();
});

test('no part ends before a declaration that the log was restored: the checkpoint names the log after it', async () => {
  const { record } = recordHistory();
  const store = openStore();
  const described = (from: number) =>
    Array.from({ length: 50 }, (_, index) => {
      const stream = { stream: `session-s_${from + index}` };
      return [record(stream, sessionStarted()), record(stream, sessionDescribed(labels('1')))];
    }).flat();
  const before = described(0);
  const declaration = record({ stream: 'log-log_1' }, restoreAccepted());
  const events = [...before, declaration, ...described(50)];
  await store.apply(events, reachedAt(events.at(-1)!, declaration.id));
  expect(store.commits.length).toBeGreaterThan(1);
  expect(store.commits.every(({ position }) => position >= declaration.position)).toBe(true);
  expect(store.content()).toEqual(contentOf(events));
  await store.close();
});

test('streams that a batch parked before it failed are reported by the next one', async () => {
  const store = openStore();
  const { record } = recordHistory();
  const [broken, other] = [{ stream: 'session-session_1' }, { stream: 'session-session_2' }];
  const events = [
    record(broken, turnCompleted(1)),
    record(other, sessionStarted()),
    ...Array.from({ length: 60 }, (_, index) =>
      record(other, sessionDescribed(labels(`${index}`))),
    ),
  ];
  const end = reachedAt(record(other, turnStarted(1)));
  store.failures.failing = 1;
  await expect(store.apply(events, end)).rejects.toThrow();
  store.failures.failing = Infinity;
  const { position } = store.commits[0]!;
  const rest = events.filter((event) => event.position > position);
  expect(rest).not.toHaveLength(0);
  expect(await store.apply(rest, end)).toMatchObject([broken]);
  expect(await store.apply([], end)).toEqual([]);
  await store.close();
});
