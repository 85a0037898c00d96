import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startTestService, type TestService } from '../../support/http/service.ts';

interface Handle {
  type: string;
  localEndpoint?: { port: number };
  remoteEndpoint?: object | null;
}

/** The TCP ports on which this process listens. */
function listeningPorts(): number[] {
  const report = process.report as typeof process.report & { excludeNetwork: boolean };
  report.excludeNetwork = true;
  const { libuv } = report.getReport() as unknown as { libuv: Handle[] };
  return libuv.flatMap(({ type, localEndpoint, remoteEndpoint }) =>
    type === 'tcp' && localEndpoint && !remoteEndpoint ? [localEndpoint.port] : [],
  );
}

describe('a service without a models file', () => {
  let service: TestService;
  let agent: string;
  beforeAll(async () => {
    service = await startTestService({}, { MODELS_FILE: '' });
    agent = await service.createAgent({ model: 'offline-echo', tool: 'calculator' });
  });
  afterAll(() => service.close());
  const run = (input: string) => service.post(`/v1/agents/${agent}/run`, { input });

  test('answers with the offline model, which listens on no port', async () => {
    expect((await run('What is 12*34?')).body.data.output).toContain('The calculator says 408.');
    const ports = [service.url, service.model.baseUrl].map((url) => Number(new URL(url).port));
    expect(new Set(listeningPorts())).toEqual(new Set(ports));
  });

  test('streams word by word', async () => {
    const response = await fetch(`${service.url}/v1/agents/${agent}/run`, {
      method: 'POST',
      headers: {
        accept: 'text/event-stream',
        'content-type': 'application/json',
        'x-api-key': service.key,
      },
      body: JSON.stringify({ input: '/slow 50 Hello' }),
    });
    const deltas = (await response.text()).match(/^event: output\.delta$/gm) ?? [];
    expect(deltas.length).toBeGreaterThan(5);
  });

  test.each([
    ['/fail', 502, 'model_error'],
    ['/fail 429', 503, 'model_overloaded'],
  ])('%s fails the run with %i %s', async (input, status, code) => {
    expect(await run(input)).toMatchObject({ status, body: { code } });
  });

  test('an unchanged replay of its turns with tool calls reports `same`', async () => {
    const input = '/call calculator {"expression":"1+1"} /call calculator {"expression":"2+2"}';
    const agent_id = await service.createAgent({ model: 'offline-echo', tool: 'calculator' });
    const runPath = `/v1/agents/${agent_id}/run`;
    const { session_id } = (await service.post(runPath, { input })).body.data;
    await service.post(runPath, { session_id, input: 'What is 5*6?' });
    const { replay_id } = (
      await service.post('/v1/replays', {
        filter: { agent_id },
        tools: 'recorded',
        budget: { tokens: 10_000 },
      })
    ).body.data;
    const path = `/v1/replays/${replay_id}`;
    await (
      await fetch(`${service.url}${path}/stream`, { headers: { 'x-api-key': service.key } })
    ).text();
    const { status, turns } = (await service.get(path)).body.data;
    expect(status).toBe('completed');
    expect(turns).toMatchObject([
      { outcome: 'same', requests: 'same' },
      { outcome: 'same', requests: 'same' },
    ]);
  });
});
