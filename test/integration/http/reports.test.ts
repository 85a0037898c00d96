import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startTestService, type TestService } from '../../support/http/service.ts';
import { eventually, newKey } from '../../support/processes/operator.ts';
import { runCli } from '../../support/processes/cliProcess.ts';

const HOSTILE = '<script>alert(1)</script><img src=x onerror=alert(2)>';

let service: TestService;
let session: string;
beforeAll(async () => {
  service = await startTestService({ text: `It is ${HOSTILE}` });
  const agent = await service.createAgent({ name: HOSTILE, instruction: `Say ${HOSTILE}` });
  session = (await service.post(`/v1/agents/${agent}/run`, { input: `Hear ${HOSTILE}` })).body.data
    .session_id as string;
});
afterAll(() => service.close());

const reportOf = async (id: string, key = service.key) => {
  const response = await fetch(`${service.url}/v1/sessions/${id}/report`, {
    headers: { 'x-api-key': key },
  });
  return { status: response.status, headers: response.headers, page: await response.text() };
};

test('a session is one page that shows all of it, does nothing, and says what proves it', async () => {
  const { status, headers, page } = await eventually(
    () => reportOf(session),
    (answer) => answer.status !== 503,
  );
  expect([status, headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
  const policy = headers.get('content-security-policy')!;
  expect(policy).toMatch(/^default-src 'none'; style-src 'sha256-[^']{44}'; .*; sandbox$/);
  expect(headers.get('x-content-type-options')).toBe('nosniff');
  expect(page).not.toMatch(/<(script|img)/i);
  for (const said of ['Say', 'Hear', 'It is'])
    expect(page).toContain(`${said} &lt;script&gt;alert(1)&lt;/script&gt;`);

  const { body } = await service.get(`/v1/sessions/${session}/proof`);
  const { events, leaf } = body.data as {
    events: { metadata: { hash: string } }[];
    leaf: { index: number };
  };
  for (const { metadata } of events) expect(page).toContain(metadata.hash);
  expect(page).toContain(`leaf ${leaf.index} `);
  expect(page.endsWith('</html>\n')).toBe(true);
}, 60_000);

test('a report is in the audit, needs the scope of exports, and is not there for others', async () => {
  const { out } = await runCli(service.folder, 'events', 'tail', '--no-follow');
  expect(out).toContain(
    `"data":{"action":"read","detail":"report, revisions 0 to 2","subject":"session-${session}"}`,
  );
  const auditor = await newKey(service.folder, { scopes: ['audit:read'] });
  const reader = await newKey(service.folder, { scopes: ['sessions:read'] });
  await eventually(
    () => reportOf(session, reader.api_key),
    ({ status }) => status === 404,
  );
  expect((await reportOf(session, auditor.api_key)).status).toBe(403);
}, 60_000);

test('the report of an erased session marks what is gone, and has none of it', async () => {
  expect((await service.send('DELETE', `/v1/sessions/${session}`, '')).status).toBe(200);
  const { status, page } = await eventually(
    () => reportOf(session),
    (answer) => answer.status !== 503,
  );
  expect(status).toBe(200);
  expect(page).not.toContain('Hear');
  expect(page).toContain('Erased: its key was destroyed');
  expect(page).toContain('The texts of the session were erased');
}, 60_000);
