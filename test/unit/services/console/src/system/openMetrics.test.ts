import { expect, test } from '@jest/globals';
import {
  parseMetrics,
  resourcesOf,
  valueOf,
} from '../../../../../../services/console/src/system/openMetrics.ts';

const TEXT = `# HELP turnlog_resource_limit The most permits # {not="a sample"} 1
# TYPE turnlog_resource_limit gauge
turnlog_resource_limit{resource="webhook_messages"} 256
turnlog_resource_limit{resource="connections"} 1e4
turnlog_resource_used{resource="connections"} 3
turnlog_resource_limit_bytes{resource="webhook_messages"} 67108864
turnlog_resource_used_bytes{resource="webhook_messages"} 1024
turnlog_resource_waiting{resource="webhook_messages"} 2
turnlog_resource_rejections_total{resource="webhook_messages",limit="account"} 4
turnlog_resource_rejections_total{resource="webhook_messages",limit="process"} 1
turnlog_resource_rejections_total{resource="requests_per_second",limit="account"} 7
odd_labels{text="a \\"quoted\\" \\\\ back\\nnew, a=\\"b\\"",other="}"} +Inf 1700000000
with_exemplar_bucket{le="0.5"} 3 # {trace_id="abc"} 0.4 1700000000.1
negative -2.5
not a sample
broken{resource="x" 5
# EOF
`;

test('reads samples with their labels, escapes, timestamps and exemplars, and skips other lines', () => {
  const metrics = parseMetrics(TEXT);
  expect(metrics.get('odd_labels')).toEqual([
    { labels: { text: 'a "quoted" \\ back\nnew, a="b"', other: '}' }, value: Infinity },
  ]);
  expect(metrics.get('with_exemplar_bucket')).toEqual([{ labels: { le: '0.5' }, value: 3 }]);
  expect(valueOf(metrics, 'negative')).toBe(-2.5);
  expect(valueOf(metrics, 'missing')).toBeUndefined();
  expect(metrics.has('not')).toBe(false);
  expect(metrics.has('broken')).toBe(false);
});

test('joins the limit, use, queue and rejections of each resource, by name', () => {
  const rows = resourcesOf(parseMetrics(TEXT)).map(({ name, isBytes, used, limit, ...rest }) => [
    name,
    isBytes,
    used,
    limit,
    rest.waiting,
    rest.rejected,
  ]);
  expect(rows).toEqual([
    ['connections', false, 3, 10_000, 0, 0],
    ['webhook_messages', false, 0, 256, 2, 5],
    ['webhook_messages', true, 1_024, 67_108_864, 2, 5],
  ]);
});
