import { expect, test } from '@jest/globals';
import {
  partsOf,
  problemsOf,
  type HealthReport,
} from '../../../../../../services/console/src/system/healthParts.ts';

const HEALTHY: HealthReport = {
  projection: { caught_up: true, parked_streams: [] },
  runs_in_flight: 2,
  runs_waiting: 1,
  transparency_log: { state: 'active', size: 1_200, lag_ms: 0 },
  webhooks: { state: 'standing_by', enabled: null, failing: null },
  replays: { state: 'active', running: 0 },
};

test('a healthy process has parts without problems', () => {
  expect(partsOf(HEALTHY).map(({ name, status, detail }) => [name, status, detail])).toEqual([
    ['Runs', 'active', '2 running · 1 waiting'],
    ['Read models', 'up to date', ''],
    ['Transparency log', 'active', '1,200 events signed'],
    ['Webhooks', 'standing by', ''],
    ['Replays', 'active', '0 running'],
  ]);
  expect(problemsOf(HEALTHY)).toEqual([]);
});

const REASON = 'the reason';
const troubles: [string, HealthReport, string][] = [
  [
    'Read models',
    { projection: { caught_up: false, lag_ms: 7_000, parked_streams: [] } },
    'do not follow',
  ],
  ['Read models', { projection: { caught_up: true, reason: REASON, parked_streams: [] } }, REASON],
  [
    'Search',
    { projection: { caught_up: true, search_reason: REASON, parked_streams: [] } },
    REASON,
  ],
  [
    'Parked streams',
    {
      projection: {
        caught_up: true,
        parked_streams: [{ stream: 'session-1', revision: 4, event_type: 'x' }],
        parked_count: 101,
      },
    },
    '101: session-1',
  ],
  [
    'Search',
    { projector: { state: 'active', lag_events: 3, lag_ms: 5, search_reason: REASON } },
    REASON,
  ],
  ['Kafka relay', { relay: { state: 'retrying', lag_ms: 5, reason: REASON } }, REASON],
  [
    'Keys that the relay parked',
    { relay: { state: 'relaying', lag_ms: 0, parked: { count: 1 } } },
    '1',
  ],
  [
    'Transparency log',
    { transparency_log: { state: 'standing_by', size: null, lag_ms: null, trouble: REASON } },
    REASON,
  ],
  [
    'Transparency log',
    { transparency_log: { state: 'active', size: 1, lag_ms: 0, doubt: REASON } },
    REASON,
  ],
  [
    'Witnesses',
    {
      transparency_log: {
        state: 'active',
        size: 1,
        lag_ms: 0,
        witnesses: { wanted: 2, reached: 1, reason: REASON },
      },
    },
    REASON,
  ],
  ['Webhooks', { webhooks: { state: 'active', enabled: 1, failing: 1, reason: REASON } }, REASON],
  ['Replays', { replays: { state: 'active', running: 1, reason: REASON } }, REASON],
  [
    'Retention',
    { retention: { state: 'refusing', due: 1, held: 0, failed: 0, erased: 0, reason: REASON } },
    REASON,
  ],
  [
    'Tools: files',
    { tool_servers: [{ name: 'files', state: 'away', tools: 2, reason: REASON }] },
    REASON,
  ],
  ['Model provider: openai', { open_circuits: ['openai'] }, 'Its last calls failed'],
  [
    'Damaged streams',
    { damaged_streams: [{ stream: 'session-2', first_revision: 1, last_revision: null }] },
    'session-2',
  ],
  ['Changed rows', { damaged_rows: { count: 1, reason: REASON } }, REASON],
  ['Keys of texts', { text_keys: { reason: REASON } }, REASON],
  ['Erasures', { erasures: { count: 2, reason: REASON } }, REASON],
  [
    'Disk (full)',
    { disk: { state: 'full', folders: [{ folder: 'data', free_bytes: 2 ** 30 }] } },
    'data has 1024 MiB free',
  ],
];

test.each(troubles)('%s: says what is wrong and what to do first (%j)', (name, health, what) => {
  const [problem, ...others] = problemsOf(health);
  expect(others).toEqual([]);
  expect(problem!.name).toBe(name);
  expect(problem!.what).toContain(what);
  expect(problem!.first).not.toBe('');
});

test('the lag of each follower is shown, and none of a part that follows nothing', () => {
  const lags = partsOf({
    ...HEALTHY,
    projection: { caught_up: true, lag_ms: 40, lag_events: 2, parked_streams: [] },
    relay: { state: 'relaying', lag_ms: 900 },
  }).map(({ name, lagMs }) => [name, lagMs]);
  expect(Object.fromEntries(lags)).toMatchObject({
    'Read models': 40,
    'Kafka relay': 900,
    'Transparency log': 0,
    Runs: undefined,
  });
});
