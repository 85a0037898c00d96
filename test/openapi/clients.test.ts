import { afterAll, expect, test } from '@jest/globals';
import { describedService } from '../support/processes/openapi/described.ts';

const service = await describedService();
afterAll(() => service?.close());
const withTools = service ? test : test.skip;

/** Runs a command that has to succeed, and resolves with what it wrote. */
async function succeeds(command: string): Promise<string> {
  const { code, output } = await service!.run(command);
  if (code !== 0) throw new Error(`${command} ended with ${code}: ${output}`);
  return output;
}

const lastLine = (output: string): unknown => JSON.parse(output.trim().split('\n').at(-1)!);

withTools(
  'openapi-typescript makes a client that runs, streams and reads without a cast, and knows every failure and event by its type',
  async () => {
    await succeeds('openapi-typescript openapi.json --output schema.d.ts');
    await succeeds('tsc --project .');
    expect(lastLine(await succeeds(`node program.js ${service!.url} ${service!.key}`))).toEqual([
      'Sums',
      '404 There is no such agent.',
      'calculator',
      true,
      true,
      true,
    ]);
  },
);

withTools(
  'openapi-python-client drops nothing, and its client runs, streams and reads without a cast, and knows every failure by its type',
  async () => {
    const output = await succeeds(
      'python -m openapi_python_client generate --path openapi.json --meta none --output-path turnlog_client --fail-on-warning',
    );
    expect(output).not.toMatch(/warning/i);
    // Silent about the generator's own code, which is not free of errors.
    await succeeds('python -m mypy --strict --follow-imports=silent program.py');
    expect(lastLine(await succeeds(`python program.py ${service!.url} ${service!.key}`))).toEqual([
      404,
      'agent_not_found',
      'invalid_request',
      '/name',
    ]);
  },
);
