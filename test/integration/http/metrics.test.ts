import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { ACCOUNT_SCOPES } from '../../../shared/accounts/events.ts';
import { debianProgram, withoutProgram } from '../../support/processes/debianProgram.ts';
import { clientWith, newKey } from '../../support/processes/operator.ts';
import { freePort } from '../../support/processes/freePort.ts';
import { expectFailure } from '../../support/http/failures.ts';
import { OPENMETRICS, scrape, seriesOf, valueOf } from '../../support/http/metrics.ts';
import { startTestService, type TestService } from '../../support/http/service.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService(
    ({ messages }) =>
      messages.some(({ role }) => role === 'tool')
        ? { text: 'It is 3.' }
        : {
            tool_calls: [
              { name: 'calculator', arguments: '{"expression":"1+2"}' },
              { name: 'invented', arguments: '{}' },
            ],
          },
    { MAX_RUNS: '7' },
  );
});
afterAll(() => service.close());

describe('the metrics', () => {
  test('are those of a run: its request, its end, its appends, its model and its tools', async () => {
    const agentId = await service.createAgent({ tool: 'calculator' });
    const ran = await service.post(`/v1/agents/${agentId}/run`, { input: 'What is 1+2?' });
    expect(ran.status).toBe(200);
    const { text } = await scrape(service);
    const run = 'method="POST",route="/v1/agents/{agentId}/run"';
    expect(valueOf(text, `turnlog_http_requests_total{${run},status="2xx"}`)).toBe(1);
    expect(valueOf(text, `turnlog_http_request_duration_seconds_count{${run}}`)).toBe(1);
    expect(valueOf(text, 'turnlog_runs_total{outcome="completed"}')).toBe(1);
    const calls = 'turnlog_model_call_duration_seconds_count{model="scripted",outcome="success"}';
    expect(valueOf(text, calls)).toBe(2);
    const tools = 'turnlog_tool_call_duration_seconds_count';
    expect(valueOf(text, `${tools}{tool="calculator",outcome="success"}`)).toBe(1);
    expect(text).not.toContain('invented');
    const appends = 'turnlog_append_duration_seconds_count{outcome="success"}';
    expect(valueOf(text, appends)).toBeGreaterThan(2);
    expect(valueOf(text, 'turnlog_ready')).toBe(1);
    expect(valueOf(text, 'turnlog_follower_lag_seconds{follower="read_models"}')).toBe(0);
    expect(valueOf(text, 'process_resident_memory_bytes')).toBeGreaterThan(1e7);
  });

  test('have the limit, the use and the rejections of each bounded resource', async () => {
    const { text } = await scrape(service);
    const of = (name: string) => valueOf(text, `turnlog_resource_${name}`);
    expect(of('limit{resource="memory_prompts"}')).toBe(7);
    expect(of('used{resource="memory_prompts"}')).toBe(0);
    expect(of('waiting{resource="memory_prompts"}')).toBe(0);
    expect(of('rejections_total{resource="memory_prompts",limit="account"}')).toBe(0);
    expect(of('used{resource="connections"}')).toBeGreaterThan(0);
    for (const resource of [
      'memory_bodies',
      'memory_answers',
      'memory_model_answers',
      'memory_waiting_runs',
      'feed_recent_events',
      'pending_appends',
      'session_cache',
    ])
      expect(of(`limit_bytes{resource="${resource}"}`)).toBeGreaterThan(1e6);
  });

  test('are text unless the client accepts OpenMetrics by name', async () => {
    const plain = await scrape(service);
    expect(plain.type).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(plain.text).toContain('# TYPE turnlog_runs_total counter\n');
    const preferred = `${OPENMETRICS};version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.5,*/*;q=0.1`;
    const open = await scrape(service, preferred);
    expect(open.type).toBe('application/openmetrics-text; version=1.0.0; charset=utf-8');
    expect(open.text).toContain('# TYPE turnlog_runs counter\n');
    expect(open.text).toMatch(/\n# EOF\n$/);
    expect(open.text).not.toContain('\n\n');
    expect(seriesOf(open.text)).toEqual(seriesOf(plain.text));
  });

  test('are shown to no key of an account unless it was issued for them', async () => {
    const tenant = await newKey(service.folder, { scopes: ACCOUNT_SCOPES });
    const refused = await (await clientWith(service.url, tenant)).get('/metrics');
    expect(expectFailure(refused, 'forbidden').error).toContain('metrics:read');
    const answer = await fetch(`${service.url}/metrics`);
    expect(answer.status).toBe(401);
  });
});

test('METRICS_PORT serves them without a key, and the API serves them no more', async () => {
  const port = await freePort();
  await service.restart({ METRICS_PORT: String(port) });
  expectFailure(await service.get('/metrics'), 'not_found');
  const { text } = await scrape({ url: `http://127.0.0.1:${port}`, key: '' });
  expect(text).toContain('turnlog_ready 1\n');
  expect((await fetch(`http://127.0.0.1:${port}/v1/agents`)).status).toBe(404);
});

const promtool = debianProgram('promtool');
if (promtool === undefined) withoutProgram('promtool', 'prometheus');
else
  test('promtool finds nothing in them', async () => {
    await service.restart();
    const { text } = await scrape(service);
    const checking = promisify(execFile)(promtool, ['check', 'metrics']);
    checking.child.stdin!.end(text);
    await expect(checking).resolves.toEqual({ stdout: '', stderr: '' });
  });
