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
async function restrictedDocument(): Promise<Record<string, any>> {
  const headers = { 'x-api-key': service!.key };
  const models = await fetch(`${service!.url}/v1/models`, { headers });
  const [{ context_window }] = ((await models.json()) as { data: any }).data;
  const document = structuredClone(service!.document);
  const { CreateAgentRequest, ChangeAgentRequest, StartReplayRequest, Judge } =
    document['components'].schemas;
  const branchesOf = (schema: any) => [schema, ...(schema?.anyOf ?? [])];
  for (const { properties } of [CreateAgentRequest, ChangeAgentRequest, StartReplayRequest, Judge])
    for (const schema of [...branchesOf(properties.model), ...branchesOf(properties.tool)])
      if (schema?.examples) schema.enum = schema.examples;
  for (const { properties } of [CreateAgentRequest, ChangeAgentRequest])
    for (const schema of branchesOf(properties.max_output_tokens))
      if (schema.minimum !== undefined) schema.maximum = context_window - 1;
  return document;
}

/** Writes a document for schemathesis, and returns the arguments that name it. */
async function saved(document: object): Promise<string> {
  await writeFile(join(service!.folder, 'restricted.json'), JSON.stringify(document));
  return `restricted.json --url ${service!.url}`;
}

/** Operations that revoke keys, that of schemathesis among them. */
const KEYS = '/v1/(keys|accounts)';

async function findsNothing(options: string): Promise<number> {
  const { code, output } = await schemathesis(
    `${await saved(await restrictedDocument())} --phases examples,coverage,fuzzing,stateful --max-examples ${examples}${seed} ${options}`,
  );
  const [, generated, passed] = /(\d+) generated, (\d+) passed/.exec(output) ?? [];
  if (code !== 0 || generated !== passed) throw new Error(output);
  return Number(generated);
}

withTools('schemathesis would find what the document does not say', async () => {
  const silent = await restrictedDocument();
  delete silent['components'].schemas.CreateAgentRequest.properties.name.pattern;
  const { code, output } = await schemathesis(
    `${await saved(silent)} --include-operation-id createAgent --phases fuzzing --max-examples 50 --seed 12`,
  );
  expect(output).toContain('Schema-valid request rejected');
  expect(code).toBe(1);
});

withTools(
  `schemathesis finds nothing in ${cases} cases of all its phases and checks`,
  async () => {
    expect(await findsNothing(`--exclude-path-regex ${KEYS}`)).toBeGreaterThanOrEqual(cases);
  },
  size({ small: 600_000, full: 5_400_000 }),
);

// The last: from some case on, its own key is revoked.
withTools(
  'nor where it manages keys and accounts',
  async () => {
    expect(await findsNothing(`--include-path-regex ${KEYS}`)).toBeGreaterThan(0);
  },
  size({ small: 600_000, full: 5_400_000 }),
);
