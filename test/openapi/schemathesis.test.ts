import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import { size } from '../support/jest/size.ts';
import { describedService } from '../support/processes/openapi/described.ts';

/** Cases at the least, and examples of each operation and phase that lead to as many. */
const { cases, examples } = size({
  small: { cases: 600, examples: 10 },
  full: { cases: 10_000, examples: 900 },
});
/** An answer may take longer than the 10 s that it would wait, on a machine that does much else. */
const REQUEST_SECONDS = 120;
/** At small size always the same cases: a run that fails, fails again. */
const seed = size({ small: ' --seed 12', full: '' });

const service = await describedService();
afterAll(() => service?.close());
const withTools = service ? test : test.skip;

const schemathesis = (options: string) =>
  service!.run(
    `python -m schemathesis.cli run --header x-api-key:${service!.key} --checks all --request-timeout ${REQUEST_SECONDS} ${options}`,
  );

/** The document, restricted to the models and tools of the service: only it knows which there are. */
async function documentOfService(): Promise<string> {
  const headers = { 'x-api-key': service!.key };
  const models = await fetch(`${service!.url}/v1/models`, { headers });
  const [{ context_window }] = ((await models.json()) as { data: any }).data;
  const mostTokens = context_window - 1;
  const document = structuredClone(service!.document);
  const { CreateAgentRequest, ChangeAgentRequest, StartReplayRequest, Judge } =
    document['components'].schemas;
  for (const { properties } of [CreateAgentRequest, ChangeAgentRequest, StartReplayRequest, Judge])
    for (const name of ['model', 'tool'])
      for (const schema of [properties[name], ...(properties[name]?.anyOf ?? [])])
        if (schema?.examples) schema.enum = schema.examples;
  for (const { properties } of [CreateAgentRequest, ChangeAgentRequest])
    for (const schema of [
      properties.max_output_tokens,
      ...(properties.max_output_tokens.anyOf ?? []),
    ])
      if (schema.minimum !== undefined) schema.maximum = mostTokens;
  await writeFile(join(service!.folder, 'restricted.json'), JSON.stringify(document));
  return `restricted.json --url ${service!.url}`;
}

withTools(
  `schemathesis finds nothing in ${cases} cases of all its phases and checks`,
  async () => {
    const { code, output } = await schemathesis(
      `${await documentOfService()} --phases examples,coverage,fuzzing,stateful --max-examples ${examples}${seed}`,
    );
    const [, generated, passed] = /(\d+) generated, (\d+) passed/.exec(output) ?? [];
    if (code !== 0 || generated !== passed) throw new Error(output);
    expect(Number(generated)).toBeGreaterThanOrEqual(cases);
  },
  size({ small: 600_000, full: 5_400_000 }),
);

withTools('schemathesis would find what the document does not say', async () => {
  const silent = structuredClone(service!.document);
  delete silent['components'].schemas.CreateAgentRequest.properties.name.pattern;
  await writeFile(join(service!.folder, 'silent.json'), JSON.stringify(silent));
  const { code, output } = await schemathesis(
    `silent.json --url ${service!.url} --include-operation-id createAgent --phases fuzzing --max-examples 50 --seed 12`,
  );
  expect(output).toContain('Schema-valid request rejected');
  expect(code).toBe(1);
});
