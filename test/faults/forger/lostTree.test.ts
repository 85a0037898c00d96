/**
 * A forger deletes a part of the transparency log, so that the events that are rewritten then can't be
 * compared with their leaves.
 */
import { afterEach, describe, expect, test } from '@jest/globals';
import { run, converse, type TestSession } from '../../support/http/damagedSession.ts';
import { apiClient, type Client, type Reply } from '../../support/http/service.ts';
import { runCliWith } from '../../support/processes/cliProcess.ts';
import { eventually } from '../../support/processes/operator.ts';
import type { LoggedEvent } from '../../support/stores/forger/forger.ts';
import { forgedStores, type ForgedService } from '../../support/stores/forger/forgedService.ts';
import { rowForger } from '../../support/stores/forger/rowForger.ts';
import { treeForger, type TreePart } from '../../support/stores/forger/treeForger.ts';

/** More events than a bundle of leaves has. */
const AGENTS = 260;
const AT_A_TIME = 20;

/** What is deleted, and what health says of it. */
const LOSSES: [string, TreePart | undefined, RegExp][] = [
  ['entries', 'entries', /has no tile\/entries\/\d+/],
  ['hashes of leaves', 'hashes', /has no tile\/0\/\d+/],
  ['state', 'state', /has 0 leaves, and \d+ were signed/],
  ['files', undefined, /has 0 leaves, and \d+ were signed|is missing/],
];

describe.each(await forgedStores())('on $name, a transparency log', ({ start }) => {
  let service: ForgedService;
  let session: TestSession;
  /** A client of an account that the process does not know after its restart. */
  let client: Client;
  let account: string;
  afterEach(() => service.close());

  const cli = async (...args: string[]): Promise<Record<string, any>> => {
    const { out, err } = await runCliWith(service.env, '--json', ...args);
    if (out === '') throw new Error(err);
    return JSON.parse(out) as Record<string, any>;
  };
  const signedSize = async (): Promise<number> =>
    (await service.get('/health/ready')).body.data.transparency_log.size as number;
  const troubleOf = ({ body }: Reply): string => body.data?.transparency_log?.trouble ?? '';
  const eventsOf = (): Promise<Reply> => service.get(`/v1/sessions/${session.session}/events`);
  const show = (): Promise<Reply> => client.get('/v1/agents');

  /** Records an account with a key that may read agents, a session, and these agents after it. */
  async function record(agents: number): Promise<void> {
    service = await start();
    ({ account_id: account } = await cli('accounts', 'open', 'Other'));
    const issue = ['keys', 'issue', '--account', account, '--scopes', 'agents:write'];
    const { api_key } = await cli(...issue);
    session = await converse(service, 2);
    for (let made = 0; made < agents; made += AT_A_TIME)
      await Promise.all(Array.from({ length: AT_A_TIME }, () => service.createAgent()));
    await service.createAgent();
    const { length } = service.forger.events();
    await eventually(signedSize, (size) => size >= length);
    await service.restart();
    client = apiClient(service.url, api_key);
  }

  /** Rewrites an event with its chain, and its entry in the tree where that is left. */
  async function rewriteEvent({ stream, revision }: LoggedEvent, changes: object): Promise<void> {
    const hashOf = () => service.forger.read(stream, revision).metadata['hash'] as string;
    const hash = hashOf();
    service.forger.rewrite(stream, revision, ({ data }) => void Object.assign(data, changes));
    await treeForger(service.env).replaceHash(hash, hashOf());
  }

  /** Rewrites a turn of the session, and gives the key another scope in the log and in its row. */
  async function rewrite(): Promise<void> {
    const scopes = ['agents:read'];
    const issued = service.forger
      .stream(`account-${account}`)
      .find(({ type }) => type.includes('key_issued'))!;
    await rewriteEvent(issued, { scopes });
    await rewriteEvent(service.forger.read(session.stream, 2), { finish_reason: 'length' });
    const key_id = issued.data['key_id'] as string;
    const sql = 'UPDATE {api_keys} SET scopes = ? WHERE key_id = ?';
    await rowForger(service.env).run(sql, JSON.stringify(scopes), key_id);
  }

  const REFUSALS = ['stream_damaged', 'store_unavailable'];

  /** Nothing that was rewritten is used. Resolves with the answers. */
  async function expectRefused(): Promise<Reply[]> {
    const answers = [
      await show(),
      await eventsOf(),
      await run(service, session.agent, 'go on', session.session),
    ];
    for (const [at, { status, body }] of answers.entries()) {
      expect([at, status >= 400, REFUSALS]).toEqual([
        at,
        true,
        expect.arrayContaining([body.code]),
      ]);
      expect(JSON.stringify(body)).not.toContain('"length"');
    }
    return answers;
  }

  async function expectNamed(reason: RegExp): Promise<void> {
    const health = await eventually(
      () => service.get('/health/ready'),
      (reply) => reason.test(troubleOf(reply)),
    );
    expect(health.body.data.status).toBe('degraded');
  }

  test.each(LOSSES)(
    'without its %s takes no event that was rewritten meanwhile, and says what is lost',
    async (_what, part, reason) => {
      await record(0);
      await treeForger(service.env).deleteTree(part);
      await rewrite();
      const [, events] = await expectRefused();
      // The process holds the hashes that it has read.
      if (part === 'hashes') return;
      expect(events!.body.error).toMatch(reason);
      await expectNamed(reason);
    },
    60_000,
  );

  // A start without the other parts waits (missingTree).
  test('without its entries takes no event after a start, and says what is lost', async () => {
    await record(0);
    const { key } = service;
    await treeForger(service.env).deleteTree('entries');
    await service.restart();
    client = apiClient(service.url, key);
    await expectRefused();
    await expectNamed(/has no tile\/entries\/\d+/);
  }, 60_000);

  test('that does not know where its bundles begin reads it again at once', async () => {
    await record(AGENTS);
    await treeForger(service.env).deleteTree('bundles');
    await rewrite();
    await expectRefused();
    const damaged = await eventually(eventsOf, ({ body }) => body.code === 'stream_damaged');
    expect(damaged.body.error).toContain('does not lead to what was signed');
    expect((await show()).body.code).toBe('stream_damaged');
    await eventually(
      () => service.get('/health/ready'),
      (reply) => troubleOf(reply) === '',
    );
    await expectRefused();
  }, 60_000);

  test('that its store refuses to read is named, and no event is taken meanwhile', async () => {
    await record(0);
    const undo = await treeForger(service.env).makeUnreadable();
    await rewrite();
    await expectRefused();
    const { body } = await service.get('/health/ready');
    expect(body.data.transparency_log.trouble).toMatch(/refuses to read|ELOOP/);
    await undo();
    const damaged = await eventually(eventsOf, (reply) => reply.body.code === 'stream_damaged');
    expect(damaged.body.error).toContain('revision 2');
  }, 60_000);

  test('without its checkpoint is compared with the one that the process knows', async () => {
    await record(0);
    await treeForger(service.env).deleteTree('checkpoint');
    await rewrite();
    await expectRefused();
  }, 60_000);
});
