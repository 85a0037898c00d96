import { afterAll, expect, jest, test } from '@jest/globals';
import { Agent } from 'undici';
import { openProvider } from '../../../../infra/openai/openProvider.ts';
import { createMemoryLedger } from '../../../../shared/lib/memory/ledger.ts';

const limits = { attemptTimeoutMs: 30_000, maxRetries: 0 };
const connection = { agent: new Agent(), ledger: createMemoryLedger() };
afterAll(() => connection.agent.destroy());

const headOf = (base_url: string, api_key?: string) =>
  openProvider({ id: 'p', base_url, ...(api_key && { api_key }) }, limits, connection).head(
    'GET',
    '/models',
  );

test.each([
  ['https://models.example/v1', 'https://models.example', '/v1/models'],
  ['https://models.example/v1/', 'https://models.example', '/v1/models'],
  ['http://127.0.0.1:8080', 'http://127.0.0.1:8080', '/models'],
  ['https://models.example/v1?api-version=1', 'https://models.example', '/v1/models?api-version=1'],
])('a path of %s is of %s%s', (baseUrl, origin, path) => {
  expect(headOf(baseUrl)).toMatchObject({ origin, path, method: 'GET' });
});

test('a key is sent without the line break that a file ended with', () => {
  expect(headOf('https://models.example', 'sk-1\n').headers).toContain('Bearer sk-1');
});

test('a provider without a key gets no credentials', () => {
  expect(headOf('https://models.example').headers).not.toContain('authorization');
});

test('the library is loaded again after a failure', async () => {
  const load = jest.fn((): object => ({ OpenAI: jest.fn() }));
  jest.unstable_mockModule('openai', load);
  load.mockImplementationOnce(() => {
    throw new Error('too many open files');
  });
  const provider = openProvider({ id: 'p', base_url: 'http://localhost' }, limits, connection);
  await expect(provider.client()).rejects.toThrow('too many open files');
  const client = await provider.client();
  expect(await provider.client()).toBe(client);
});
