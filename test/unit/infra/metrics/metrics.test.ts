import { expect, test } from '@jest/globals';
import { createMetrics } from '../../../../infra/metrics/metrics.ts';
import { valueOf } from '../../../support/http/metrics.ts';

const cpuSeconds = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
};

test('the CPU time of the process is that of its programs and of the system', async () => {
  const before = cpuSeconds();
  const shown = valueOf(
    await createMetrics().render('text', undefined),
    'process_cpu_seconds_total',
  );
  expect(shown).toBeGreaterThanOrEqual(before);
  expect(shown).toBeLessThanOrEqual(cpuSeconds());
});
