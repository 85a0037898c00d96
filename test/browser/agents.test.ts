/** Agents: list, create, edit, revisions and deletion, as a person uses them. */
import { afterAll, expect, test } from '@jest/globals';
import { startConsoleBrowser, type ConsolePage } from '../support/browser/console.ts';
import { XSS_PAYLOADS } from '../support/browser/xssPayloads.ts';
import { startTestService, type TestService } from '../support/http/service.ts';

const services: TestService[] = [];
const browser = await startConsoleBrowser('agents');
afterAll(async () => {
  await browser?.close();
  for (const service of services) await service.close();
});
const withBrowser = browser ? test : test.skip;

async function start(): Promise<TestService> {
  const service = await startTestService();
  services.push(service);
  return service;
}

const heading = (page: ConsolePage, name: string) =>
  page.getByRole('heading', { name, level: 1, exact: true }).waitFor();

/** Axe finds nothing, and there is a screenshot, in light, in dark and on a phone. */
async function inspectEverywhere(service: TestService, path: string, name: string) {
  const wait = (page: ConsolePage) => page.getByRole('heading', { level: 1 }).waitFor();
  expect(await browser!.inspectLooks(path, { service, name, wait })).toEqual([]);
}

withBrowser('creates the first agent from a ready example', async () => {
  const service = await start();
  await inspectEverywhere(service, '/agents', 'empty');
  const page = await browser!.open('/agents', { service });
  await page.getByRole('link', { name: 'Start from an example' }).click();
  await heading(page, 'New agent');
  expect(await page.getByLabel('Name', { exact: true }).inputValue()).toBe('Sums');
  expect(await page.getByLabel('Tools').inputValue()).toBe('calculator');
  await page.getByRole('button', { name: 'Create agent' }).click();
  await heading(page, 'Sums');
  const { body } = await service.get('/v1/agents');
  expect(body.data).toMatchObject([
    { name: 'Sums', config: { model: 'scripted', tool: 'calculator' } },
  ]);
  expect(page.url()).toBe(`${service.url}/console/agents/${body.data[0].agent_id}`);
  expect(page.problems).toEqual([]);
});

withBrowser('stores every field that the API has', async () => {
  const service = await start();
  const page = await browser!.open('/agents/new', { service });
  await page.getByLabel('Name', { exact: true }).fill('Everything');
  await page.getByLabel('Instruction', { exact: true }).fill('Answer in JSON.\nBe brief.');
  await page.getByLabel('Model', { exact: true }).selectOption('narrow');
  await page.getByLabel('Temperature').fill('0.25');
  await page.getByLabel('Most output tokens').fill('20');
  await page.getByText(/Available: .*calculator.*clock/).waitFor();
  await page.getByLabel('Tools').fill('calculator,clock');
  await page.getByLabel('Response format').selectOption('JSON that matches a schema');
  await page.getByLabel('Name of the schema').fill('sum');
  await page.getByLabel('JSON Schema').fill('{"type":"object"}');
  await page.getByLabel('The schema is enforced by').selectOption('true');
  await page.getByLabel('Component').fill('Wizard');
  await page.getByLabel('Compaction').selectOption('true');
  await page.getByRole('button', { name: 'Create agent' }).click();
  await heading(page, 'Everything');
  const [{ agent_id }] = (await service.get('/v1/agents')).body.data;
  const created = (await service.get(`/v1/agents/${agent_id}`)).body.data;
  expect(created).toMatchObject({
    component: 'Wizard',
    config: {
      name: 'Everything',
      instruction: 'Answer in JSON.\nBe brief.',
      model: 'narrow',
      tool: 'calculator,clock',
      compaction: true,
      temperature: 0.25,
      max_output_tokens: 20,
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'sum', schema: { type: 'object' }, strict: true },
      },
    },
  });
  await inspectEverywhere(service, `/agents/${agent_id}`, 'agent');
  // The form shows what is stored, and saving it changes nothing.
  await page.getByRole('link', { name: 'Edit' }).click();
  await heading(page, 'Edit Everything');
  await page.getByLabel('Instruction', { exact: true }).fill('Answer in JSON.\nBe very brief.');
  await page.getByRole('button', { name: 'Save changes' }).click();
  await heading(page, 'Everything');
  const changed = (await service.get(`/v1/agents/${agent_id}`)).body.data;
  expect(changed.config).toEqual({
    ...created.config,
    instruction: 'Answer in JSON.\nBe very brief.',
  });
  expect(changed.component).toBe('Wizard');
  await inspectEverywhere(service, `/agents/${agent_id}/edit`, 'edit');
  expect(page.problems).toEqual([]);
});

withBrowser('shows each problem at its field, and keeps what was typed', async () => {
  const service = await start();
  const page = await browser!.open('/agents/new', { service });
  await page.getByLabel('Instruction', { exact: true }).fill('Be brief.');
  await page.getByLabel('Temperature').fill('5');
  await page.getByRole('button', { name: 'Create agent' }).click();
  await page.getByText('Some fields need a change.').waitFor();
  const noteOf = async (label: string): Promise<string> => {
    const id = await page.getByLabel(label, { exact: true }).getAttribute('aria-describedby');
    return page.locator(`[id="${id}"]`).innerText();
  };
  expect(await noteOf('Name')).toContain('must not be empty');
  expect(await noteOf('Temperature')).toContain('must be');
  await page
    .locator('input:focus')
    .and(page.getByLabel('Name', { exact: true }))
    .waitFor();
  expect(await page.inspect('errors')).toEqual([]);
  await page.getByLabel('Name', { exact: true }).fill('Fine');
  await page.getByLabel('Temperature').fill('1');
  await page.getByLabel('Response format').selectOption('JSON that matches a schema');
  await page.getByLabel('JSON Schema').fill('{"type":');
  await page.getByRole('button', { name: 'Create agent' }).click();
  await page.getByText(/This is not JSON/).waitFor();
  await page.getByLabel('JSON Schema').fill('{"type":"no such type"}');
  await page.getByRole('button', { name: 'Create agent' }).click();
  await page.getByText('Some fields need a change.').waitFor();
  expect(await noteOf('JSON Schema')).toContain('schema');
  expect(await page.getByLabel('Instruction', { exact: true }).inputValue()).toBe('Be brief.');
  expect((await service.get('/v1/agents')).body.data).toEqual([]);
  expect(page.problems).toEqual([]);
});

withBrowser('finds one of many agents by its name, with the keyboard alone', async () => {
  const service = await start();
  for (let from = 0; from < 450; from += 50)
    await Promise.all(
      Array.from({ length: 50 }, (_, at) => service.createAgent({ name: `Agent ${from + at}` })),
    );
  const last = await service.createAgent({ name: 'Zebra', tool: 'calculator' });
  const page = await browser!.open('/agents', { service });
  await page.getByRole('link', { name: 'Agent 0', exact: true }).waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('zeb');
  await page.getByText('1 of 451 agents').waitFor();
  expect(await page.getByRole('link', { name: /^Agent \d/ }).count()).toBe(0);
  expect(new URL(page.url()).search).toBe('?name=zeb');
  await page.getByRole('searchbox').blur();
  await page.keyboard.press('j');
  await page.locator('a:focus', { hasText: 'Zebra' }).waitFor();
  await page.keyboard.press('Enter');
  await heading(page, 'Zebra');
  expect(page.url()).toBe(`${service.url}/console/agents/${last}`);
  const deep = await browser!.open('/agents?name=zeb', { service });
  await deep.getByText('1 of 451 agents').waitFor();
  await inspectEverywhere(service, '/agents', 'list');
  expect(page.problems).toEqual([]);
});

withBrowser('loads a long list page by page', async () => {
  const service = services.at(-1)!;
  const page = await browser!.open('/agents', { service });
  const more = page.getByRole('button', { name: 'Load more agents' });
  await more.click();
  await page.getByRole('link', { name: 'Agent 399', exact: true }).waitFor();
  await more.click();
  await page.getByRole('link', { name: 'Zebra', exact: true }).waitFor();
  await page.getByText('451 of 451 agents').waitFor();
  expect(await more.count()).toBe(0);
  expect(page.problems).toEqual([]);
});

withBrowser('says why the next page of a list is missing, and reads on when told to', async () => {
  const service = services.at(-1)!;
  const page = await browser!.open('/system', { service });
  const pages = await page.rejectRequests(/\/v1\/agents\?.*after=/);
  await page.goto(`${service.url}/console/agents?name=zeb`);
  const alert = page.getByRole('alert').filter({ hasText: 'Rejected by the test.' });
  await alert.waitFor();
  await page.getByText('0 of 200 loaded so far').waitFor();
  await page.waitForLoadState('networkidle');
  expect(pages.rejected()).toBe(1);
  expect(await page.inspect('incomplete')).toEqual([]);
  await pages.accept();
  await page.getByRole('button', { name: 'Load more agents' }).click();
  await page.getByText('1 of 451 agents').waitFor();
  expect(await alert.count()).toBe(0);
  expect(page.problems).toEqual([]);
});

withBrowser('explains a concurrent change by another client', async () => {
  const service = await start();
  const agentId = await service.createAgent({ name: 'Shared', temperature: 1 });
  const page = await browser!.open(`/agents/${agentId}/edit`, { service });
  await page.getByLabel('Name', { exact: true }).fill('Mine');
  await service.send('PATCH', `/v1/agents/${agentId}`, { temperature: 2, name: 'Theirs' });
  await page.getByRole('button', { name: 'Save changes' }).click();
  const conflict = page.getByRole('alert').filter({ hasText: 'was changed while you edited it' });
  await conflict.getByRole('heading', { name: 'Temperature' }).waitFor();
  expect(await conflict.innerText()).toContain('Theirs');
  expect((await service.get(`/v1/agents/${agentId}`)).body.data.name).toBe('Theirs');
  expect(await page.inspect('conflict')).toEqual([]);
  await page.getByRole('button', { name: 'Replace Revision 1' }).click();
  await heading(page, 'Mine');
  const { data } = (await service.get(`/v1/agents/${agentId}`)).body;
  expect(data).toMatchObject({ name: 'Mine', revision: 2, config: { temperature: 1 } });
  // The other way: what was typed here is dropped, and the form has what is stored.
  await page.getByRole('link', { name: 'Edit' }).click();
  await page.getByLabel('Name', { exact: true }).fill('Mine again');
  await service.send('PATCH', `/v1/agents/${agentId}`, { name: 'Theirs again' });
  await page.getByRole('button', { name: 'Save changes' }).click();
  await page.getByRole('button', { name: /Discard mine/ }).click();
  expect(await page.getByLabel('Name', { exact: true }).inputValue()).toBe('Theirs again');
  expect(page.problems).toEqual([]);
});

withBrowser('compares any two revisions, field by field and line by line', async () => {
  const service = await start();
  const agentId = await service.createAgent({
    name: 'Poet',
    instruction: 'Write a poem.\nKeep it short.\nUse no rhyme.',
  });
  const change = (changes: object) => service.send('PATCH', `/v1/agents/${agentId}`, changes);
  await change({ instruction: 'Write a poem.\nKeep it long.\nUse no rhyme.', tool: 'clock' });
  await change({ name: 'Bard', tool: null });
  const page = await browser!.open(`/agents/${agentId}`, { service });
  await page.getByRole('link', { name: 'Revisions' }).click();
  await page.getByRole('heading', { name: 'From revision 1 to 2' }).waitFor();
  await page.getByRole('heading', { name: 'Tools', level: 3 }).waitFor();
  expect(await page.getByRole('heading', { level: 3 }).allInnerTexts()).toEqual(['Name', 'Tools']);
  await page.getByRole('link', { name: /Changed · 1/ }).click();
  await page.getByRole('heading', { name: 'From revision 0 to 1' }).waitFor();
  await page.locator('del').waitFor();
  expect(await page.locator('del').allInnerTexts()).toEqual(['short']);
  expect(await page.locator('ins').allInnerTexts()).toEqual(['long']);
  await page.getByLabel('To revision').fill('2');
  await page.getByRole('heading', { name: 'From revision 0 to 2' }).waitFor();
  expect(new URL(page.url()).search).toBe('?from=0&to=2');
  await page.getByRole('heading', { name: 'Name', level: 3 }).waitFor();
  expect(await page.getByRole('heading', { level: 3 }).allInnerTexts()).toEqual([
    'Name',
    'Instruction',
  ]);
  await inspectEverywhere(service, `/agents/${agentId}/revisions?from=0&to=1`, 'revisions');
  expect(page.problems).toEqual([]);
});

withBrowser('deletes an agent after a confirmation', async () => {
  const service = await start();
  const agentId = await service.createAgent({ name: 'Doomed' });
  const page = await browser!.open(`/agents/${agentId}`, { service });
  const open = page.getByRole('button', { name: 'Delete', exact: true });
  await open.click();
  const dialog = page.getByRole('dialog', { name: 'Delete this agent?' });
  expect(await page.inspect('delete')).toEqual([]);
  await page.keyboard.press('Escape');
  expect((await service.get('/v1/agents')).body.data).toHaveLength(1);
  await open.click();
  await dialog.getByRole('button', { name: 'Delete agent' }).click();
  await heading(page, 'Agents');
  await page.getByText('Create the first agent').waitFor();
  expect((await service.get('/v1/agents')).body.data).toEqual([]);
  expect(page.problems).toEqual([]);
});

withBrowser('shows what agents are called and told as text', async () => {
  const service = await start();
  const names = XSS_PAYLOADS.map((text) => text.replaceAll(/\p{C}/gu, ' ').slice(0, 256));
  for (const name of names) await service.createAgent({ name, component: name });
  const agentId = await service.createAgent({
    name: names[2],
    instruction: XSS_PAYLOADS.join('\n'),
    response_format: {
      type: 'json_schema',
      json_schema: { name: 'x', schema: { description: XSS_PAYLOADS.join('\n') } },
    },
  });
  await service.send('PATCH', `/v1/agents/${agentId}`, {
    instruction: XSS_PAYLOADS.toReversed().join('\n'),
  });
  const paths = ['', `/${agentId}`, `/${agentId}/edit`, `/${agentId}/revisions?from=0&to=1`];
  for (const path of paths) {
    const page = await browser!.open(`/agents${path}`, { service });
    await page.getByText(names[2]!).first().waitFor();
    await page.waitForLoadState('networkidle');
    if (path === '') {
      for (const name of names.slice(0, 8))
        expect(await page.getByText(name, { exact: true }).count()).toBeGreaterThan(0);
      await page.keyboard.press('Control+k');
      await page
        .getByRole('option', { name: /Chat with/ })
        .first()
        .waitFor();
    }
    expect(await page.evaluate('window.__xss')).toBeUndefined();
    expect(page.problems).toEqual([]);
  }
});
