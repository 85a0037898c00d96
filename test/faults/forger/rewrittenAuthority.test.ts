/**
 * Events that decide about instructions and access are rewritten in the log with the chain of their
 * stream, and the read models are rebuilt from them.
 */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { converse, run, type TestSession } from '../../support/http/damagedSession.ts';
import { expectFailure } from '../../support/http/failures.ts';
import type { Reply } from '../../support/http/service.ts';
import { runCliWith } from '../../support/processes/cliProcess.ts';
import { eventually } from '../../support/processes/operator.ts';
import type { Change } from '../../support/stores/forger/forger.ts';
import { forgedStores, type ForgedService } from '../../support/stores/forger/forgedService.ts';

describe.each(await forgedStores())('on $name', ({ start }) => {
  let service: ForgedService;
  let session: TestSession;
  beforeEach(async () => {
    service = await start();
    session = await converse(service, 1);
    await eventually(
      () => service.get(`/v1/sessions/${session.session}/proof`),
      ({ status }) => status === 200,
    );
  }, 60_000);
  afterEach(() => service.close());

  const requests = (): Promise<Reply>[] => [
    service.get(`/v1/agents/${session.agent}`),
    run(service, session.agent, 'Hi.'),
  ];

  /** Rewrites an event while the service is stopped; nothing uses it, before and after a rebuild. */
  async function expectUnused(
    { stream, revision }: { stream: string; revision: number },
    change: Change,
    message = `The stream ${stream} is damaged: the event at revision ${revision} is not the one`,
  ): Promise<void> {
    await service.service().stop();
    service.forger.rewrite(stream, revision, change);
    await service.restart();
    const calls = service.model.requests.length;
    for (const isRebuilt of [false, true]) {
      if (isRebuilt) {
        expect((await runCliWith(service.env, 'projections', 'rebuild')).code).toBe(0);
        await service.restart();
        // The rows now say what the log says.
        const verified = await runCliWith(service.env, '--json', 'projections', 'verify');
        expect([verified.code, JSON.parse(verified.out)]).toEqual([
          1,
          expect.objectContaining({
            log: expect.objectContaining({
              misfit: expect.stringContaining(`(${stream} revision ${revision}, `),
            }),
          }),
        ]);
      }
      for (const answer of await Promise.all(requests()))
        expect(expectFailure(answer, 'stream_damaged').error).toContain(message);
      const { status, damaged_streams } = (await service.get('/health/ready')).body.data;
      expect([status, damaged_streams]).toEqual([
        'degraded',
        [expect.objectContaining({ stream })],
      ]);
    }
    expect(service.model.requests).toHaveLength(calls);
  }

  test('an agent whose recorded model was rewritten does not run', async () => {
    await expectUnused({ stream: `agent-${session.agent}`, revision: 0 }, ({ data }) => {
      data['model'] = 'narrow';
    });
  }, 60_000);

  test('an API key whose recorded scopes were rewritten gives no access', async () => {
    const [{ stream } = { stream: '' }] = service.forger.events('account-');
    const issued = service.forger.stream(stream).find(({ type }) => type.includes('key_issued'))!;
    const reverseScopes: Change = ({ data }) => {
      data['scopes'] = (data['scopes'] as string[]).toReversed();
    };
    // A caller who is not identified yet reads no stream, no revision and no reason.
    await expectUnused(issued, reverseScopes, 'The events that decide about this key are damaged.');
  }, 60_000);

  test('an agent that is rewritten before its event has a leaf damages its stream', async () => {
    const agent = await service.createAgent();
    service.forger.rewrite(`agent-${agent}`, 0, ({ data }) => {
      data['model'] = 'narrow';
    });
    for (const answer of [
      await service.get(`/v1/agents/${agent}`),
      await run(service, agent, 'Hi.'),
    ])
      expect(expectFailure(answer, 'stream_damaged').error).toContain(`agent-${agent}`);
  }, 60_000);

  test('the newest event of the log, rewritten before a start, damages its stream alone', async () => {
    const agent = await service.createAgent();
    const { length } = service.forger.events();
    await eventually(
      () => service.get('/health/ready'),
      ({ body }) => body.data.transparency_log.size >= length,
    );
    await service.service().stop();
    const { stream, revision } = service.forger.events().at(-1)!;
    service.forger.rewrite(stream, revision, ({ metadata }) => {
      metadata['recorded_at'] = '2020-01-01T00:00:00.000Z';
    });
    await service.restart();
    const { status, damaged_streams } = (await service.get('/health/ready')).body.data;
    expect([status, damaged_streams]).toEqual(['degraded', [expect.objectContaining({ stream })]]);
    expect(expectFailure(await run(service, agent, 'Hi.'), 'stream_damaged').error).toContain(
      stream,
    );
    expect((await run(service, session.agent, 'Hi.', session.session)).status).toBe(200);
  }, 60_000);
});
