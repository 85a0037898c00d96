/** Whatever was done to a session in the log, its proof says with one code what was found. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { converse, type TestSession } from '../../support/http/damagedSession.ts';
import { expectFailure } from '../../support/http/failures.ts';
import { eventually } from '../../support/processes/operator.ts';
import type { Forger, LoggedEvent } from '../../support/stores/forger/forger.ts';
import { forgedStores, type ForgedService } from '../../support/stores/forger/forgedService.ts';

type Attack = (forger: Forger, stream: string) => void;

const OTHER = 'f'.repeat(64);

/** What is done, to a session of five events, and what its proof says of it. */
const ATTACKS: Array<[string, Attack, string]> = [
  [
    'the hash of its last event is changed',
    (forger, stream) => forger.change(stream, 4, ({ metadata }) => void (metadata['hash'] = OTHER)),
    'the event at revision 4 does not fit: its hash does not match its content',
  ],
  [
    'the hash of an older event is changed',
    (forger, stream) => forger.change(stream, 2, ({ metadata }) => void (metadata['hash'] = OTHER)),
    'the event at revision 2 does not fit: its hash does not match its content',
  ],
  [
    'the content of its last event is changed',
    (forger, stream) =>
      forger.change(stream, 4, ({ data }) => void (data['finish_reason'] = 'forged')),
    'the event at revision 4 does not fit: its hash does not match its content',
  ],
  [
    'the content of an older event is changed',
    (forger, stream) =>
      forger.change(stream, 2, ({ data }) => void (data['finish_reason'] = 'forged')),
    'the event at revision 2 does not fit: its hash does not match its content',
  ],
  [
    'its last event is rewritten with a hash that fits',
    (forger, stream) =>
      forger.rewrite(stream, 4, ({ data }) => void (data['finish_reason'] = 'forged')),
    'the event at revision 4 is not the one that was recorded',
  ],
  [
    'a text is replaced by a plain one',
    (forger, stream) => forger.rewrite(stream, 2, ({ data }) => void (data['output'] = 'Forged')),
    'is not the one that was recorded',
  ],
  [
    'an event is inserted',
    (forger, stream) =>
      forger.insert(stream, 2, { ...forger.read(stream, 1), id: crypto.randomUUID() }),
    'is not the one that was recorded',
  ],
  [
    'its last event is deleted',
    (forger, stream) => forger.delete(stream, 4),
    'revision 4 is missing; revisions 0 to 3 were found',
  ],
  [
    'an older event is deleted',
    (forger, stream) => forger.delete(stream, 2),
    'revision 2 is missing; revisions 0 to 4 were found',
  ],
  [
    'all of it is deleted',
    (forger, stream) => forger.cut(stream),
    'its events are gone; no event of it was found',
  ],
];

describe.each(await forgedStores())('the proof of a session in $name', ({ start }) => {
  let service: ForgedService;
  beforeAll(async () => {
    service = await start();
  });
  afterAll(() => service.close());

  const proofOf = ({ session }: TestSession) => service.get(`/v1/sessions/${session}/proof`);

  async function recorded(): Promise<TestSession> {
    const session = await converse(service, 2);
    // The newest event of the log is of another session.
    await converse(service, 1);
    await eventually(
      () => proofOf(session),
      ({ status }) => status === 200,
    );
    return session;
  }

  test.each(ATTACKS)('says so where %s', async (_what, attack, found) => {
    const session = await recorded();
    attack(service.forger, session.stream);
    // The second answer is that of a stream that is known to be damaged.
    for (const answer of [await proofOf(session), await proofOf(session)]) {
      const { error, details } = expectFailure(answer, 'stream_damaged');
      expect(error).toContain(`The stream ${session.stream} is damaged: `);
      expect(error).toContain(found);
      expect(details).toEqual({ stream: { message: error, path: 'path' } });
    }
    const { body } = await service.get('/health/ready');
    expect(body.data.status).toBe('degraded');
    expect(body.data.damaged_streams).toContainEqual(
      expect.objectContaining({ stream: session.stream }),
    );
    expect((await service.get(`/v1/sessions/${session.session}`)).status).toBe(200);
  });

  test('has each event with its own leaf, under one checkpoint, on every page', async () => {
    const session = await recorded();
    const { body } = await proofOf(session);
    const events = body.data.events as Array<LoggedEvent & { inclusion: { index: number } }>;
    const leaves = events.map(({ inclusion }) => inclusion.index);
    expect(leaves).toEqual(leaves.toSorted((a, b) => a - b));
    expect([leaves.length, leaves.at(-1)]).toEqual([5, body.data.leaf.index]);
    const page = await service.get(`/v1/sessions/${session.session}/proof?limit=2&after=1`);
    expect(page.body.data.events.map(({ inclusion }: any) => inclusion.index)).toEqual(
      leaves.slice(2, 4),
    );
  });

  test('is given again once the session is put back', async () => {
    const session = await recorded();
    const { forger } = service;
    const [, , genuine] = forger.stream(session.stream);
    forger.change(session.stream, 2, ({ data }) => void (data['finish_reason'] = 'forged'));
    expectFailure(await proofOf(session), 'stream_damaged');
    forger.change(session.stream, 2, () => genuine!);
    expect((await proofOf(session)).status).toBe(200);
    const { body } = await service.get('/health/ready');
    expect(JSON.stringify(body.data.damaged_streams ?? [])).not.toContain(session.stream);
  });
});
