import { afterAll, expect, test } from '@jest/globals';
import { describedService } from '../support/processes/openapi/described.ts';

const service = await describedService();
afterAll(() => service?.close());
const withTools = service ? test : test.skip;

withTools('Redocly finds nothing, with every rule that it recommends as an error', async () => {
  const { code, output } = await service!.run(
    'redocly lint --extends recommended-strict openapi.json',
  );
  expect(output).toContain('Your API description is valid');
  expect(code).toBe(0);
});

withTools('Spectral finds nothing, down to its hints', async () => {
  const { code, output } = await service!.run(
    'spectral lint openapi.json --ruleset spectral.yaml --fail-severity hint',
  );
  expect(output).toContain("No results with a severity of 'hint' or higher found!");
  expect(code).toBe(0);
});
