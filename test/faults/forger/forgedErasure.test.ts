/** Someone who writes to the log records erasures that name the keys of other sessions. */
import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { startCliWith, type CliResult } from '../../support/processes/cliProcess.ts';
import { eventually } from '../../support/processes/operator.ts';
import { forgedStores, type ForgedService } from '../../support/stores/forger/forgedService.ts';

const VICTIM = 'a text under legal hold';

describe.each(await forgedStores())('on $name', ({ start }) => {
  let service: ForgedService;
  let victim: string;
  let accomplice: string;
  let account: string;
  beforeEach(async () => {
    service = await start();
    const agent = await service.createAgent();
    const run = async (input: string): Promise<string> =>
      (await service.post(`/v1/agents/${agent}/run`, { input })).body.data.session_id as string;
    victim = await run(VICTIM);
    accomplice = await run('of no interest');
    account = service.forger.read(`session-${victim}`, 0).metadata['account_id'] as string;
  }, 60_000);
  afterEach(() => service.close());

  const cli = (...args: string[]): Promise<CliResult> => startCliWith(service.env, ...args).ended;
  const hold = async (): Promise<void> => {
    expect((await cli('accounts', 'hold', account, 'on', '--reason', 'a case')).code).toBe(0);
  };
  const boxOf = (session: string): string =>
    service.forger
      .stream(`session-${session}`)
      .find(({ type }) => type === 'session.turn_started.v1')!.data['input'].box as string;
  const keyOf = (session: string): string => boxOf(session).slice(0, 16);

  /** Records an erasure at the end of a session, as the service would. */
  function forgeErasure(session: string, ...key_ids: string[]): void {
    const stream = `session-${session}`;
    const last = service.forger.stream(stream).at(-1)!;
    service.forger.insert(stream, last.revision + 1, {
      id: randomUUID(),
      type: 'session.erased.v1',
      data: { reason: 'request', key_ids },
      metadata: { ...last.metadata },
    });
  }
  const expectVictimReadable = async (): Promise<void> => {
    const { body } = await eventually(
      () => service.get(`/v1/sessions/${victim}`),
      ({ status }) => status === 200,
    );
    expect(body.data.turns[0].input).toBe(VICTIM);
  };

  test('reconcile destroys no key that the erased stream’s own texts are not encrypted with', async () => {
    await service.service().stop();
    forgeErasure(accomplice, keyOf(victim));
    for (const args of [[], ['--apply']]) {
      const { code, out } = await cli('--json', 'text-keys', 'reconcile', ...args);
      const done = JSON.parse(out);
      expect([code, done.to_destroy + done.destroyed_again]).toEqual([1, 0]);
      expect(done.streams).toMatchObject([{ stream: `session-${accomplice}`, destroy: [] }]);
      expect(done.streams[0].keep).toContainEqual({
        key_id: keyOf(victim),
        reason: 'no text of the stream is encrypted with it',
      });
      // The transparency log does not contain the event either.
      expect(done.streams[0].keep).toContainEqual({
        key_id: keyOf(accomplice),
        reason: 'the transparency log does not contain the event that erases it',
      });
    }
    const verified = await cli('audit', 'verify', '--texts');
    expect([verified.code, verified.out]).toEqual([1, expect.stringContaining(accomplice)]);
    await service.restart();
    await expectVictimReadable();
    const { text_keys } = (await service.get('/health/ready')).body.data;
    expect(text_keys.reason).toContain(`session-${accomplice}`);
  }, 60_000);

  test('nor one that a ciphertext was made to name', async () => {
    await service.service().stop();
    const [from, to] = [keyOf(accomplice), keyOf(victim)];
    const turn = service.forger
      .stream(`session-${accomplice}`)
      .find(({ type }) => type === 'session.turn_started.v1')!;
    service.forger.change(turn.stream, turn.revision, (event) => {
      event.data['input'].box = event.data['input'].box.replace(from, to);
    });
    await service.restart();
    // Erased by its owner, as any session.
    await service.send('DELETE', `/v1/sessions/${accomplice}`, '');
    await service.service().stop();
    expect((await cli('text-keys', 'reconcile', '--apply')).out).toContain(
      `the key ${to} is kept: it decrypts no text of the stream`,
    );
    await service.restart();
    await expectVictimReadable();
  }, 60_000);

  test('a hold keeps the keys of a session whose erasure is forged, from reconcile and from its client', async () => {
    await hold();
    await service.service().stop();
    forgeErasure(victim, keyOf(victim));
    // The service takes the event for one of its own, and its transparency log contains it.
    await service.restart();
    await eventually(
      async () => (await cli('audit', 'verify')).out,
      (out) => out.includes('The transparency log fits') && !out.includes('came later'),
    );
    const refused = await service.send('DELETE', `/v1/sessions/${victim}`, '');
    expect([refused.status, refused.body.code]).toEqual([409, 'erasure_refused']);
    await service.service().stop();
    const { code, out } = await cli('--json', 'text-keys', 'reconcile', '--apply');
    expect([code, JSON.parse(out)]).toMatchObject([
      1,
      {
        destroyed_again: 0,
        streams: [
          {
            stream: `session-${victim}`,
            keep: [{ key_id: keyOf(victim), reason: `the account ${account} is on legal hold` }],
          },
        ],
      },
    ]);
    await service.restart();
    expect(await cli('text-keys', 'status')).toMatchObject({ code: 1 });
  }, 60_000);

  test('an erasure of an accomplice’s session that names the victim’s key leaves the victim readable in the running service', async () => {
    await service.service().stop();
    forgeErasure(accomplice, keyOf(victim));
    await service.restart();
    await service.send('DELETE', `/v1/sessions/${accomplice}`, '');
    await expectVictimReadable();
    await service.restart();
    await expectVictimReadable();
  }, 60_000);

  test('an event that follows an erasure is named', async () => {
    await service.send('DELETE', `/v1/sessions/${accomplice}`, '');
    const stream = `session-${accomplice}`;
    const events = service.forger.stream(stream);
    service.forger.insert(stream, events.length, { ...events[1]!, id: randomUUID() });
    expect(await cli('audit', 'verify')).toMatchObject({
      code: 1,
      out: expect.stringContaining('it follows the erasure of its stream'),
    });
  }, 60_000);
});
