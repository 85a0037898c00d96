/** What the forger of the other tests in this folder can do. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { converse } from '../../support/http/damagedSession.ts';
import { forgedStores, type ForgedService } from '../../support/stores/forger/forgedService.ts';
import { misfitIn } from '../../support/stores/misfitIn.ts';

describe.each(await forgedStores())('a forger of a log in $name', ({ name, start }) => {
  let service: ForgedService;
  beforeAll(async () => {
    service = await start();
  });
  afterAll(() => service.close());

  const misfit = () => misfitIn(service.env['EVENTSTOREDB_URL'] ?? service.folder);

  test('rewrites an event with its chain while the service runs, and deletes and inserts events', async () => {
    const { forger } = service;
    const { stream } = await converse(service, 2);
    const [, , completed] = forger.stream(stream);
    forger.rewrite(stream, 2, (event) => {
      event.data['finish_reason'] = 'length';
    });
    expect(forger.read(stream, 2).data).toMatchObject({ finish_reason: 'length' });
    const refused = await service.get(`/v1/sessions/${stream.slice(8)}/events`);
    expect([refused.status, refused.body.code]).toEqual([409, 'stream_damaged']);
    expect(forger.read(stream, 2).metadata['hash']).not.toBe(completed!.metadata['hash']);
    expect(await misfit()).toBeUndefined();

    forger.change(stream, 2, ({ data }) => ({ data: { ...data, finish_reason: 'stop' } }));
    expect(await misfit()).toBeDefined();
    forger.rechain(stream);
    expect(await misfit()).toBeUndefined();

    const { id: _, ...copied } = forger.read(stream, 1);
    forger.insert(stream, 5, { ...copied, id: crypto.randomUUID() });
    expect(forger.stream(stream)).toHaveLength(6);
    expect(forger.events('session-').at(-1)).toMatchObject({ stream, revision: 5 });
    forger.delete(stream, 5);
    forger.cut(stream, 3);
    expect(forger.stream(stream).map(({ revision }) => revision)).toEqual([0, 1, 2]);
    expect(name).toBeDefined();
  });
});
