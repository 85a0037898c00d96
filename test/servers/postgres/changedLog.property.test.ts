/**
 * A log that is cut, restored, exchanged and declared while its followers are stopped: each goes on
 * exactly right, or refuses it and changes nothing.
 */
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import type { Checkpoint, StoredEvent } from '../../../shared/ports/eventStore.ts';
import {
  postgresFollower,
  sqliteFollower,
  type Follower,
} from '../../support/stores/changedLogs/followers.ts';
import { appendAll, appendOthers } from '../../support/builders/changedHistories.ts';
import {
  changeableLog,
  KINDS_OF_LOGS,
  type ChangeableLog,
} from '../../support/stores/changedLogs/logs.ts';
import { relayFollower } from '../../support/stores/changedLogs/relayFollower.ts';
import { randomHistory } from '../../support/builders/randomHistory.ts';
import { size } from '../../support/jest/size.ts';
import { createTestDatabase } from '../../support/servers/postgres/postgresDatabase.ts';
import { readLog } from '../../support/servers/postgres/postgresFaults.ts';
import { startPostgresServer } from '../../support/servers/postgres/postgresServer.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';
import { declareRestored } from '../../support/stores/declareRestored.ts';
import { fixedLog } from '../../support/fakes/fixedLog.ts';

const postgres = await startPostgresServer();
afterAll(async () => postgres?.close());

/** What is done to the log at once, while nobody follows it. */
const change = fc.record({
  how: fc.constantFrom('nothing', 'cut', 'copy', 'swap'),
  /** Where it is cut, in percent of its events. */
  at: fc.nat(100),
  /** With what it goes on: as before but with other events, or far beyond where it ended. */
  grows: fc.constantFrom('not', 'as before', 'far'),
  accepted: fc.constantFrom(0, 0, 1, 2),
});
type Change = typeof change extends fc.Arbitrary<infer Value> ? Value : never;

const cases = fc.record({
  history: randomHistory(''),
  other: randomHistory('other_'),
  more: randomHistory('more_'),
  /** In percent of the events: where the copy is made, and how far each follower has come. */
  copied: fc.nat(100),
  followed: fc.tuple(fc.nat(100), fc.nat(100), fc.nat(100)),
  changes: fc.array(change, { minLength: 1, maxLength: size({ small: 2, full: 3 }) }),
});
type Case = typeof cases extends fc.Arbitrary<infer Value> ? Value : never;

const part = (events: readonly StoredEvent[], percent: number): StoredEvent[] =>
  events.slice(0, Math.round((events.length * percent) / 100));

const isIn = (events: readonly StoredEvent[], checkpoint: Checkpoint): boolean =>
  events.some(({ id, position }) => id === checkpoint.event_id && position === checkpoint.position);

const isDeclaredFor = (events: readonly StoredEvent[], { log_id }: Checkpoint): boolean =>
  events.some(
    ({ type, data }) =>
      type === 'log.restore_accepted.v1' &&
      (JSON.parse(data) as { replaces: string[] }).replaces.includes(log_id),
  );

/** Follows the log as it is now, and looks at what came of it. */
async function followAndLook(log: ChangeableLog, follower: Follower): Promise<void> {
  const before = await follower.contents();
  const checkpoint = await follower.checkpoint();
  await log.use(async (store) => {
    const events = await readLog(store);
    const fits = !checkpoint || isIn(events, checkpoint) || isDeclaredFor(events, checkpoint);
    const refused = await follower.follow(store);
    if (fits) {
      expect([follower.name, refused]).toEqual([follower.name, undefined]);
      await follower.expectRight(events);
    } else {
      expect([follower.name, refused]).toEqual([
        follower.name,
        expect.stringContaining(checkpoint.event_id),
      ]);
      expect(await follower.contents()).toEqual(before);
    }
  });
}

describe.each(KINDS_OF_LOGS)('a log in $name', (kind) => {
  let folder: string;
  let opened: AsyncDisposableStack;
  beforeEach(async () => {
    folder = await temporaryFolder();
    opened = new AsyncDisposableStack();
    opened.defer(() => rm(folder, { recursive: true }));
  });
  afterEach(() => opened.disposeAsync());

  async function openFollowers(): Promise<Follower[]> {
    const followers = [relayFollower(), sqliteFollower(join(folder, 'followers'))];
    if (!postgres) return followers;
    const database = opened.adopt(await createTestDatabase(postgres.url), ({ drop }) => drop());
    return [...followers, postgresFollower(database.url)];
  }

  async function begin({ history, copied, followed }: Case) {
    await rm(folder, { recursive: true });
    await mkdir(join(folder, 'followers'), { recursive: true });
    const log = changeableLog(kind, folder);
    const followers = await openFollowers();
    await log.use((store) => appendAll(store, part(history, copied)));
    const putBack = await log.copy('older');
    const events = await log.use(async (store) => {
      await appendAll(store, history.slice(part(history, copied).length));
      return readLog(store);
    });
    for (const [index, follower] of followers.entries())
      await follower.follow(fixedLog(part(events, followed[index]!)));
    return { log, followers, putBack };
  }

  /** Declares it, as an operator who names every log that a follower asks for. */
  async function accept(log: ChangeableLog, followers: readonly Follower[]): Promise<void> {
    const checkpoints = await Promise.all(followers.map(({ checkpoint }) => checkpoint()));
    const ids = checkpoints.flatMap((found) => found?.log_id ?? []);
    await log.use((store) => declareRestored(store, ids));
  }

  async function make(
    { how, at, grows }: Change,
    { log, putBack }: Awaited<ReturnType<typeof begin>>,
    { other, more }: Case,
  ): Promise<void> {
    const before = await log.use(readLog);
    if (how === 'cut') await log.cutAfter(part(before, at).at(-1));
    if (how === 'copy') await putBack();
    if (how === 'swap') await log.cutAfter(undefined);
    await log.use(async (store) => {
      if (how === 'swap') await appendOthers(store, [], part(other, at));
      if (grows === 'not') return;
      const left = await readLog(store);
      await appendOthers(store, left, before.slice(left.length));
      if (grows === 'far') await appendOthers(store, await readLog(store), more);
    });
  }

  test(
    'is followed exactly, or refused with the reason and nothing changed; and exactly once it was declared',
    () =>
      fc.assert(
        fc.asyncProperty(cases, async (given) => {
          const begun = await begin(given);
          const { log, followers } = begun;
          for (const next of given.changes) {
            await make(next, begun, given);
            for (let count = 0; count < next.accepted; count += 1) await accept(log, followers);
            await Promise.all(followers.map((follower) => followAndLook(log, follower)));
          }
          await accept(log, followers);
          await Promise.all(followers.map((follower) => followAndLook(log, follower)));
          const left = await Promise.all(followers.map(({ checkpoint }) => checkpoint()));
          const events = await log.use(readLog);
          for (const found of left) expect(isIn(events, found!)).toBe(true);
        }),
        { numRuns: size({ small: 2, full: 60 }), endOnFailure: true },
      ),
    size({ small: 120_000, full: 1_800_000 }),
  );
});
