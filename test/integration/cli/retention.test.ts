import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startTestService, type TestService } from '../../support/http/service.ts';
import { runCli, startCliProcess } from '../../support/processes/cliProcess.ts';

let service: TestService;
let account: string;

const readText = async (path: string): Promise<string> =>
  (await fetch(service.url + path, { headers: { 'x-api-key': service.key } })).text();

const cli = (...args: string[]) => runCli(service.folder, ...args);

beforeAll(async () => {
  service = await startTestService();
  const [first] = JSON.parse((await cli('accounts', 'list', '--json')).out) as {
    account_id: string;
  }[];
  account = first!.account_id;
});
afterAll(() => service.close());

test('an operator says how long sessions are kept, sees it, and is refused what can not be', async () => {
  const set = (...options: string[]) => cli('accounts', 'retention', account, ...options);
  expect((await set('--minimum-days', '183', '--maximum-days', '400')).out).toBe(
    'at least 183 days, at most 400 days\n',
  );
  const refused = await set('--maximum-days', '182');
  expect({ code: refused.code, err: refused.err }).toEqual({
    code: 1,
    err: "Sessions can't be kept for at least 183 days and for at most 182.\n",
  });
  expect((await set('--minimum-days', '36501')).code).toBe(2);
  expect((await set('--minimum-days', 'none')).out).toBe('at most 400 days\n');
  expect(JSON.parse((await set('--json')).out)).toEqual({
    account_id: account,
    retention: { maximum_days: 400 },
  });
}, 180_000);

test('a hold needs its reason, is shown, and keeps a session until it ends; each read is audited', async () => {
  const agent = await service.createAgent();
  const session = (await service.post(`/v1/agents/${agent}/run`, { input: 'hi' })).body.data
    .session_id as string;
  const hold = (...args: string[]) => cli('accounts', 'hold', account, ...args);
  expect((await hold('on')).code).toBe(2);
  expect((await hold('on', '--reason', 'Case 12')).out).toBe('held: Case 12\n');
  const path = `/v1/sessions/${session}`;
  const refused = await service.send('DELETE', path, {});
  expect(refused.body).toMatchObject({ status: 409, code: 'erasure_refused' });
  // Operators see the hold's reason, clients don't.
  expect(JSON.stringify(refused.body)).not.toContain('Case 12');
  const byOperator = await cli('sessions', 'erase', session, '--confirm', session);
  expect(byOperator.err).toContain("The hold's reason: Case 12");
  const ofAccount = await cli('accounts', 'erase', account, '--confirm', account, '--json');
  expect(JSON.parse(ofAccount.err)).toMatchObject({
    error: { code: 'account_held', message: expect.stringContaining('Case 12') },
  });
  for (const shown of ['/v1/events?format=jsonl', '/v1/export?format=events', '/health/ready'])
    expect(await readText(shown)).not.toContain('Case 12');
  expect((await service.get(`${path}/events?limit=2`)).status).toBe(200);
  expect((await service.get('/v1/sessions/session_none/events')).status).toBe(404);
  expect((await hold('off')).out).toBe('-\n');
  expect((await service.send('DELETE', path, {})).status).toBe(200);
  const { out } = await cli('events', 'tail', '--no-follow');
  const events = out
    .split('\n')
    .slice(0, -1)
    .map(
      (line) => JSON.parse(line) as { type: string; stream: string; erased?: true; data: object },
    );
  expect(
    events.filter(({ stream }) => stream === `audit-${account}`).map(({ data }) => data),
  ).toContainEqual({ action: 'read', subject: `session-${session}`, detail: 'revisions 0 to 1' });
  expect(events.find(({ type }) => type === 'session.turn_started.v1')).toMatchObject({
    erased: true,
    data: { input: '' },
  });
  expect(out).not.toContain('"salt"');
}, 180_000);

/** A clock that is 40 days ahead. */
const AHEAD =
  '--import=data:text/javascript,const%20now=Date.now.bind(Date);Date.now=()=>now()%2B40*86400000';

test('an operator whose clock is ahead erases no session under its minimum', async () => {
  const agent = await service.createAgent();
  const session = (await service.post(`/v1/agents/${agent}/run`, { input: 'hi' })).body.data
    .session_id as string;
  const keep = (days: string) => cli('accounts', 'retention', account, '--minimum-days', days);
  await keep('30');
  const env = { DATA_DIR: service.folder, NODE_OPTIONS: AHEAD };
  const erase = ['sessions', 'erase', session, '--confirm', session];
  const refused = await startCliProcess(env, ...erase).ended;
  expect(refused.code).toBe(1);
  expect(refused.err).toContain('are kept for at least 30 days after their last event');
  expect(refused.err).toContain('the clock is 40 days ahead');
  await keep('none');
  expect((await service.get(`/v1/sessions/${session}`)).status).toBe(200);
}, 180_000);
