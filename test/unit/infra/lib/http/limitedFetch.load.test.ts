import { expect, jest, test } from '@jest/globals';

class Agent {
  compose = (): Agent => this;
}
const load = jest.fn(() => ({
  Agent,
  fetch: async () => 'response',
  buildConnector: () => undefined,
}));
jest.unstable_mockModule('undici', load);

test('a request loads the client again after a failure', async () => {
  const { limitedFetch } = await import('../../../../../infra/lib/http/limitedFetch.ts');
  load.mockImplementationOnce(() => {
    throw new Error('too many open files');
  });
  await expect(limitedFetch('http://localhost')).rejects.toThrow('too many open files');
  expect(await limitedFetch('http://localhost')).toBe('response');
});
