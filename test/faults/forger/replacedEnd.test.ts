/**
 * A forger deletes the end of a session while no service runs, and appends another one: its events get
 * leaves as any others.
 */
import { expect, test } from '@jest/globals';
import { converse } from '../../support/http/damagedSession.ts';
import { runCliWith } from '../../support/processes/cliProcess.ts';
import { eventually } from '../../support/processes/operator.ts';
import { forgedStores } from '../../support/stores/forger/forgedService.ts';

test.each(await forgedStores())(
  'an end on $name that is appended anew is found beside its rows and the leaves of the other',
  async ({ start }) => {
    await using resources = new AsyncDisposableStack();
    const service = resources.adopt(await start(), (one) => one.close());
    const session = await converse(service, 3);
    // The read models know the hash of the newest event of the log.
    await converse(service, 1);
    const proofOf = () => service.get(`/v1/sessions/${session.session}/proof`);
    await eventually(proofOf, ({ status }) => status === 200);
    await service.service().stop();
    const genuine = service.forger.stream(session.stream).slice(5);
    service.forger.cut(session.stream, 5);
    for (const { revision, ...event } of genuine)
      service.forger.insert(session.stream, revision, {
        ...event,
        id: crypto.randomUUID(),
        data: { ...event.data, ...(revision === 6 && { finish_reason: 'length' }) },
      });
    await service.restart();
    const found = await eventually(
      async () => {
        const { damaged_rows } = (await service.get('/health/ready')).body.data;
        return (damaged_rows?.rows ?? [])[0] as object | undefined;
      },
      (row) => row !== undefined,
    );
    expect(found).toMatchObject({ table: 'turns', column: 'finish_reason' });
    // docs/proof.md: inherent, because its new events have leaves as any others.
    expect((await proofOf()).status).toBe(200);
    for (const command of ['audit', 'projections'])
      expect(await runCliWith(service.env, command, 'verify')).toMatchObject({
        code: 1,
        out: expect.stringContaining('an event was dropped before it'),
      });
  },
  120_000,
);
