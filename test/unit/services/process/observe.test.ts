import { expect, test } from '@jest/globals';
import { createMetrics } from '../../../../infra/metrics/metrics.ts';
import { watchEventLoop } from '../../../../services/process/observe.ts';
import { LONG_STEP_MS, runTask } from '../../../../shared/lib/concurrency/eventLoopWatchdog.ts';
import { valueOf } from '../../../support/http/metrics.ts';

function useCpu(ms: number): void {
  const until = process.threadCpuUsage().user + ms * 1_000;
  while (process.threadCpuUsage().user < until);
}

test('a task with long steps is named in the log once in a while, and each of them is counted', async () => {
  const lines: unknown[] = [];
  const metrics = createMetrics();
  const watch = watchEventLoop(metrics, { warn: (line: unknown) => void lines.push(line) });
  for (const task of ['relay', 'relay', 'webhooks']) {
    runTask(task, () => useCpu(2 * LONG_STEP_MS));
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  watch[Symbol.dispose]();
  expect(lines).toMatchObject([
    { steps: 1, task: 'relay' },
    { steps: 1, task: 'webhooks' },
  ]);
  const text = await metrics.render('text', undefined);
  expect(valueOf(text, 'turnlog_event_loop_long_steps_total{cause="code"}')).toBe(3);
  expect(valueOf(text, 'turnlog_event_loop_delay_seconds_count')).toBeGreaterThan(3);
});
