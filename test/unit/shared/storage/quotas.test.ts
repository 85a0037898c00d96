import { describe, expect, test } from '@jest/globals';
import { storeUnavailableError } from '../../../../shared/lib/errors/turnlogError.ts';
import type { Position } from '../../../../shared/ports/eventStore.ts';
import type { ReadModels } from '../../../../shared/ports/readModels.ts';
import type { Counts } from '../../../../shared/storage/counts.ts';
import type { AppendPurpose } from '../../../../shared/storage/appendPurpose.ts';
import { createStorageQuotas } from '../../../../shared/storage/quotas.ts';
import type { Quotas } from '../../../../shared/storage/quotaRules.ts';

const NOON = Date.parse('2026-11-26T12:00:00.000Z');
const NO_QUOTAS: Quotas = {
  events_per_day: 0,
  bytes_per_day: 0,
  events: 0,
  bytes: 0,
  audits_per_day: 0,
};
const ONE: Counts = { events: 1, bytes: 100, audits: 0 };
const READ: Counts = { events: 0, bytes: 0, audits: 1 };

/** Quotas over a log and a projection of it that can be late or away. */
function setUp(quotas: Partial<Quotas>) {
  const log: (Counts & { day: string })[] = [];
  const state = { projected: 0, away: false, elapsed: 0, limits: {} as Partial<Quotas> };
  const positionOf = (events: number) => String(events).padStart(6, '0') as Position;
  const sum = (some: readonly Counts[], name: keyof Counts) =>
    some.reduce((total, counts) => total + counts[name], 0);
  const rowOf = (some: readonly Counts[]) => ({
    account_id: 'acct_1',
    day: '',
    events: sum(some, 'events'),
    bytes: sum(some, 'bytes'),
    audits: sum(some, 'audits'),
    position: positionOf(state.projected),
  });
  const answer = async <Row>(row: () => Row): Promise<Row> => {
    if (state.away) throw storeUnavailableError('away');
    return row();
  };
  const service = createStorageQuotas({
    readModels: {
      findAccount: (() =>
        answer(() => ({ limits: state.limits }))) as unknown as ReadModels['findAccount'],
      findStorage: (_account, day) =>
        answer(() => {
          const shown = log.slice(0, state.projected);
          return {
            today: rowOf(shown.filter((counts) => counts.day === day)),
            total: rowOf(shown),
          };
        }),
    },
    defaults: { ...NO_QUOTAS, ...quotas },
    clock: { now: () => NOON + state.elapsed },
    now: () => state.elapsed,
  });
  async function append(purpose: AppendPurpose = 'client', counts = ONE): Promise<string> {
    try {
      const { appended } = await service.admit('acct_1', purpose, counts);
      log.push({ ...counts, day: new Date(NOON + state.elapsed).toISOString().slice(0, 10) });
      appended(positionOf(log.length));
      return 'appended';
    } catch (error) {
      return (error as { code: string }).code;
    }
  }
  return {
    ...service,
    state,
    append,
    log,
    async appendMany(count: number) {
      const results: string[] = [];
      for (let times = 0; times < count; times += 1) results.push(await append());
      return results.filter((result) => result === 'appended').length;
    },
    /** Lets reads in the background end. */
    async later(ms: number) {
      state.elapsed += ms;
      await service.useOf('acct_1').catch(() => undefined);
    },
  };
}

describe('the quotas of an account', () => {
  test('bound a burst while the projector shows nothing of it', async () => {
    const { appendMany, later } = setUp({ events_per_day: 10 });
    expect(await appendMany(15)).toBe(10);
    await later(10_000);
    expect(await appendMany(5)).toBe(0);
  });

  test('bound a burst of appends in flight', async () => {
    const { append } = setUp({ bytes_per_day: 1_000 });
    const results = await Promise.all(Array.from({ length: 30 }, () => append()));
    expect(results.filter((result) => result === 'appended')).toHaveLength(10);
  });

  test('count an append once when the projector has shown it, and exactly, however it lags', async () => {
    const { state, append, log, later, useOf } = setUp({ events_per_day: 500 });
    let accepted = 0;
    for (let times = 0; times < 1_000; times += 1) {
      if ((await append()) === 'appended') accepted += 1;
      if (times % 7 === 0) state.projected = Math.max(0, log.length - 3);
      if (times % 5 === 0) await later(100);
    }
    state.projected = log.length;
    await later(1_000);
    while ((await append()) === 'appended') accepted += 1;
    expect(accepted).toBe(500);
    expect((await useOf('acct_1')).total.events).toBe(500);
  });

  test('do not count what could not be appended', async () => {
    const { admit, append } = setUp({ events: 1 });
    (await admit('acct_1', 'client', ONE)).failed();
    expect(await append()).toBe('appended');
    expect(await append()).toBe('quota_exceeded');
  });

  test('hold after a restart, by what the read models show', async () => {
    const first = setUp({ bytes: 1_000 });
    await first.appendMany(10);
    const second = setUp({ bytes: 1_000 });
    second.log.push(...first.log);
    second.state.projected = 10;
    expect(await second.append()).toBe('quota_exceeded');
  });

  test('of a day begin anew at midnight UTC, and the error says when', async () => {
    const { state, admit, append, appendMany, later } = setUp({ events_per_day: 2, events: 3 });
    await appendMany(2);
    await expect(admit('acct_1', 'client', ONE)).rejects.toMatchObject({
      code: 'quota_exceeded',
      message:
        'The account has reached its quota `events_per_day`: 2 events a day. It resets at 2026-11-27T00:00:00.000Z.',
      retriable: true,
      retryAfterSeconds: 12 * 3_600,
    });
    state.projected = 2;
    await later(12 * 3_600_000);
    expect(await append()).toBe('appended');
    await expect(admit('acct_1', 'client', ONE)).rejects.toMatchObject({
      message:
        'The account has reached its quota `events`: 3 events. Only the operator can raise it.',
      retriable: false,
      retryAfterSeconds: undefined,
    });
  });

  test('never refuse what is always recorded, and count it', async () => {
    const { append } = setUp({ events_per_day: 2 });
    for (let times = 0; times < 3; times += 1) expect(await append('always')).toBe('appended');
    expect(await append()).toBe('quota_exceeded');
  });

  test('of reads and of writes are separate', async () => {
    const { append } = setUp({ events_per_day: 1, audits_per_day: 2 });
    expect(await append('audit', READ)).toBe('appended');
    expect(await append('audit', READ)).toBe('appended');
    expect(await append('audit', READ)).toBe('quota_exceeded');
    expect(await append()).toBe('appended');
    expect(await append()).toBe('quota_exceeded');
  });

  test('leave a tenth for requests that cancel, and no more', async () => {
    const { append, appendMany } = setUp({ events_per_day: 10 });
    await appendMany(10);
    expect(await append('cancel')).toBe('appended');
    expect(await append('cancel')).toBe('quota_exceeded');
  });

  test('can be set for an account, also to none', async () => {
    const { state, append, appendMany, later } = setUp({ events_per_day: 2, bytes: 100_000 });
    expect(await appendMany(3)).toBe(2);
    state.limits = { events_per_day: 0 };
    await later(500);
    expect(await appendMany(5)).toBe(5);
    state.limits = { bytes: 100 };
    await later(500);
    expect(await append()).toBe('quota_exceeded');
  });

  test('hold by the last counts while the read models are away', async () => {
    const { state, append, appendMany, later } = setUp({ events: 5 });
    await appendMany(2);
    state.away = true;
    await later(60_000);
    expect(await appendMany(10)).toBe(3);
    expect(await append()).toBe('quota_exceeded');
  });
});
