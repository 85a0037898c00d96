import { expect, test } from '@jest/globals';
import { createMetrics } from '../../../../infra/metrics/metrics.ts';
import { watchEventLoop } from '../../../../services/process/observe.ts';
import {
  LONG_STEP_MS,
  runTask,
  type LongStep,
} from '../../../../shared/lib/concurrency/eventLoopWatchdog.ts';
import { valueOf } from '../../../support/http/metrics.ts';

function useCpu(ms: number): void {
  const until = process.threadCpuUsage().user + ms * 1_000;
  while (process.threadCpuUsage().user < until);
}

/** After several checks of the watchdog, and what they report some turns later. */
async function settled(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 100));
  for (let turns = 0; turns < 4; turns += 1) await new Promise((resolve) => setImmediate(resolve));
}

test('a task with long steps is named in the log once in a while, and each of them is counted', async () => {
  const lines: LongStep[] = [];
  const metrics = createMetrics();
  const watch = watchEventLoop(metrics, {
    warn: (line: unknown) => void lines.push(line as LongStep),
  });
  for (const task of ['relay', 'relay', 'webhooks']) {
    runTask(task, () => useCpu(2 * LONG_STEP_MS));
    await settled();
  }
  watch[Symbol.dispose]();
  // The test runner has steps of its own, of no task.
  expect(lines.filter(({ task }) => task !== 'unknown')).toMatchObject([
    { steps: 1, task: 'relay' },
    { steps: 1, task: 'webhooks' },
  ]);
  const text = await metrics.render('text', undefined);
  const counted = ['code', 'garbage_collection'].map((cause) =>
    valueOf(text, `turnlog_event_loop_long_steps_total{cause="${cause}"}`),
  );
  expect(counted[0]! + counted[1]!).toBeGreaterThanOrEqual(3);
  expect(valueOf(text, 'turnlog_event_loop_delay_seconds_count')).toBeGreaterThan(3);
});
