import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { HandleContext } from '../../../../../shared/commandHandling/handle.ts';
import {
  confirmErasures,
  confirmTime,
  keepTime,
  readConfirmedBefore,
  readKeptTime,
  readRecordedBefore,
} from '../../../../../shared/erasure/retention/retentionStreams.ts';
import { appendMore, appendTo } from '../../../../support/stores/projections/projector.ts';
import { sessionDescribed, sessionStarted } from '../../../../support/builders/events.ts';
import { handleContext } from '../../../../support/stores/handleContext.ts';
import { eventStoreFixture } from '../../../../support/stores/sqlite/sqliteEventStore.ts';

const START = Date.UTC(2026, 10, 25);
const HOUR_MS = 3_600_000;

let fixture: Awaited<ReturnType<typeof eventStoreFixture>>;
let context: HandleContext;
beforeEach(async () => {
  fixture = await eventStoreFixture();
  context = handleContext(fixture.store(), START);
});
afterEach(() => fixture.dispose());

test('the proven time is the last one that was recorded', async () => {
  expect(await readKeptTime(context)).toBeUndefined();
  await keepTime(context, START, 0);
  await keepTime(context, START + HOUR_MS, 0);
  await keepTime(context, START, 0);
  expect(await readKeptTime(context)).toEqual({
    time: START + HOUR_MS,
    confirmations: 0,
    fromRevision: 0,
  });
});

test('a time from before a confirmation is not recorded after it', async () => {
  await keepTime(context, START + 99 * HOUR_MS, 0);
  await confirmTime(context, START, 'The clock was wrong.');
  await keepTime(context, START + 100 * HOUR_MS, 0);
  expect(await readKeptTime(context)).toMatchObject({ time: START, confirmations: 1 });
  await keepTime(context, START + HOUR_MS, 1);
  expect(await readKeptTime(context)).toMatchObject({ time: START + HOUR_MS, confirmations: 1 });
});

test('what an operator confirmed of an account is of that account', async () => {
  await confirmErasures(context, 'acct_1', START, 'The maximum is new.');
  expect(await readConfirmedBefore(context, 'acct_1')).toBe(START);
  expect(await readConfirmedBefore(context, 'acct_2')).toBe(-Infinity);
  expect(await readKeptTime(context)).toBeUndefined();
});

test('an event was recorded before a time if a proven time that is not later stands behind it', async () => {
  const { store } = context;
  const session = 'session-session_1';
  const position = async () =>
    (await store.readStream(session, { direction: 'backwards', limit: 1 }))[0]!.position;
  await appendTo(store, session, [sessionStarted()]);
  const first = await position();
  expect((await readRecordedBefore(context, START - HOUR_MS))(first)).toBe(true);
  const positions: Awaited<ReturnType<typeof position>>[] = [];
  for (let hour = 0; hour < 20; hour += 1) {
    await keepTime(context, START + hour * HOUR_MS, 0);
    await appendMore(store, session, [sessionDescribed({}, `${hour}`)]);
    positions.push(await position());
  }
  for (const at of [-1, 0, 0.5, 1, 7, 18, 18.9, 19, 99]) {
    const isBefore = await readRecordedBefore(context, START + at * HOUR_MS);
    // What stands before the first proven time is from before all of them.
    expect(isBefore(first)).toBe(true);
    const before = positions.filter((one) => isBefore(one)).length;
    expect([at, before]).toEqual([at, Math.max(0, Math.min(19, Math.floor(at)))]);
  }
  // A confirmation of an earlier time begins anew.
  await confirmTime(context, START, 'The clock was wrong.');
  const isBefore = await readRecordedBefore(context, START - HOUR_MS);
  expect(positions.every((one) => isBefore(one))).toBe(true);
});
