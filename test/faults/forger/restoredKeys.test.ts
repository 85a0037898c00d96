/** A key store that is restored from a backup brings the keys of erased texts back. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from '@jest/globals';
import { startCliWith, type CliResult } from '../../support/processes/cliProcess.ts';
import { eventually } from '../../support/processes/operator.ts';
import { backUpKeys } from '../../support/stores/forger/backUpKeys.ts';
import { forgedStores, type ForgedService } from '../../support/stores/forger/forgedService.ts';

const MARKER = 'a secret that was erased';

describe.each(await forgedStores())('on $name', ({ start }) => {
  let service: ForgedService;
  afterEach(() => service.close());

  const cli = (...args: string[]): Promise<CliResult> => startCliWith(service.env, ...args).ended;
  const run = async (agent: string, input: string): Promise<string> =>
    (await service.post(`/v1/agents/${agent}/run`, { input })).body.data.session_id as string;
  const erase = async (session: string): Promise<void> => {
    expect((await service.send('DELETE', `/v1/sessions/${session}`, '')).status).toBe(200);
  };
  const reported = async (): Promise<string | undefined> =>
    (await service.get('/health/ready')).body.data.text_keys?.reason as string | undefined;

  test('a text that was erased stays closed and is reported until its key is destroyed again, whatever is erased meanwhile', async () => {
    service = await start(({ messages }) => ({ text: `re: ${messages.at(-1)!.content}` }));
    const agent = await service.createAgent();
    const erased = await run(agent, MARKER);
    const later = await run(agent, 'erased later');
    await service.service().stop();
    const restoreKeys = await backUpKeys(service);
    await service.restart();
    await erase(erased);
    expect(await reported()).toBeUndefined();
    await service.service().stop();
    await restoreKeys();
    await service.restart();
    expect(await reported()).toContain(`session-${erased}`);

    // The attack: one more erasure, which is in order.
    await erase(later);
    await service.restart();
    expect(await reported()).toContain(`session-${erased}`);

    // No reader opens the text, whose key exists.
    expect((await service.get(`/v1/sessions/${erased}`)).body.code).toBe('session_erased');
    const events = await service.get(`/v1/sessions/${erased}/events`);
    expect(JSON.stringify(events.body)).not.toContain(MARKER);
    const feed = await fetch(`${service.url}/v1/events?format=jsonl&limit=1000`, {
      headers: { 'x-api-key': service.key },
    });
    const fed = await feed.text();
    expect(fed).toContain(erased);
    expect(fed).not.toContain(MARKER);
    const bundle = join(service.folder, '..', 'bundle.tar');
    const exported = await cli('--json', 'audit', 'export', '--session', erased, '--out', bundle);
    expect(JSON.parse(exported.out)).toMatchObject({ disclosed: 0 });
    expect((await readFile(bundle)).includes(MARKER)).toBe(false);
    const tail = await cli('events', 'tail', '--no-follow');
    expect(tail.code).toBe(0);
    expect(tail.out).toContain(`session-${erased}`);
    expect(tail.out).not.toContain(MARKER);

    const verified = await cli('audit', 'verify', '--texts');
    expect([verified.code, verified.out]).toEqual([
      1,
      expect.stringMatching(/its stream records its erasure, but the key \S{16} exists/),
    ]);
    expect(verified.out).toContain(`session-${erased}`);
    expect((await cli('audit', 'verify')).code).toBe(0);
    const status = await cli('--json', 'text-keys', 'status');
    expect([status.code, JSON.parse(status.out)]).toEqual([
      1,
      expect.objectContaining({
        erased_with_keys: { count: 1, streams: [`session-${erased}`] },
      }),
    ]);

    await service.service().stop();
    const dry = await cli('--json', 'text-keys', 'reconcile');
    const [listed] = JSON.parse(dry.out).streams;
    expect(listed).toMatchObject({ stream: `session-${erased}`, keep: [] });
    expect(JSON.parse(dry.out)).toMatchObject({ applied: false, to_destroy: 1, kept: 0 });
    expect((await cli('text-keys', 'status')).code).toBe(1);
    const applied = await cli('--json', 'text-keys', 'reconcile', '--apply');
    expect(JSON.parse(applied.out)).toMatchObject({ applied: true, destroyed_again: 1, kept: 0 });
    expect((await cli('text-keys', 'status')).code).toBe(0);
    expect((await cli('audit', 'verify', '--texts')).code).toBe(0);
    await service.restart();
    expect(await eventually(reported, (reason) => reason === undefined)).toBeUndefined();
  }, 60_000);
});
