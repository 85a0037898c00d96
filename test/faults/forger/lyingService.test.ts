/**
 * A service shows a browser other events than those that it recorded: the console's own code reads
 * them from a real service, through a server that changes the answers.
 */
import { createServer, type Server } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Mismatch } from '../../../services/console/src/audit/verify/mismatch.ts';
import type { ReadHash } from '../../../services/console/src/audit/verify/merkle.ts';
import {
  readCheckpoint,
  readKeys,
  type Checkpoint,
} from '../../../services/console/src/audit/verify/notes.ts';
import {
  checkpointVerifier,
  verifySession,
  type EventProof,
  type Trust,
} from '../../../services/console/src/audit/verify/verifySession.ts';
import { shownEventHash } from '../../../shared/transparency/proof/shownTexts.ts';
import { converse, run, type TestSession } from '../../support/http/damagedSession.ts';
import { startCliWith } from '../../support/processes/cliProcess.ts';
import { eventually } from '../../support/processes/operator.ts';
import { forgedStores, type ForgedService } from '../../support/stores/forger/forgedService.ts';

/** A page of a session's events, or of its proof. */
interface Page {
  events: any[];
  /** Of a proof: the revision of the session's last event, and the checkpoint. */
  proof?: { revision: number; checkpoint: string };
}

/** Changes a page that the service answers with. */
type Lie = (page: Page) => void;

let service: ForgedService;
let lie: Lie | undefined;

/** Forwards requests, and changes the pages of events. */
const liar: Server = createServer((request, response) => {
  const forward = async (): Promise<void> => {
    const answer = await fetch(service.url + request.url, {
      headers: { 'x-api-key': String(request.headers['x-api-key']) },
    });
    response.statusCode = answer.status;
    response.setHeader('content-type', answer.headers.get('content-type') ?? 'text/plain');
    const bytes = Buffer.from(await answer.arrayBuffer());
    if (!lie || !answer.ok || request.url!.startsWith('/v1/log/')) return void response.end(bytes);
    const body = JSON.parse(bytes.toString()) as { data: any };
    const isProof = request.url!.includes('/proof?');
    const page: Page = isProof
      ? { events: body.data.events, proof: body.data }
      : { events: body.data };
    lie(page);
    response.end(
      JSON.stringify({
        ...body,
        data: isProof ? { ...page.proof, events: page.events } : page.events,
      }),
    );
  };
  void forward().catch((error: unknown) => response.destroy(error as Error));
});

/** The part of the console that reads what is verified. It runs where a page's globals are. */
interface ConsoleReads {
  sessionFromService(
    sessionId: string,
    signal: AbortSignal,
  ): { session_id: string; proofs: AsyncIterable<EventProof>; total: () => number };
  readTree: (size: number) => ReadHash;
}
let reads: ConsoleReads;

beforeAll(async () => {
  await once(liar.listen(0, '127.0.0.1'), 'listening');
  const { port } = liar.address() as AddressInfo;
  const globals = {
    location: { origin: `http://127.0.0.1:${port}` },
    sessionStorage: { getItem: () => service.key },
  };
  for (const [name, value] of Object.entries(globals))
    Object.defineProperty(globalThis, name, { value, configurable: true });
  const path = '../../../services/console/src/audit/service.ts';
  reads = (await import(path)) as ConsoleReads;
});
afterAll(() => void liar.close());

/** Computes the hashes of events anew, from a revision on. */
function rechain(events: any[], from: number): void {
  for (const event of events)
    if (event.revision >= from) {
      const before = events.find(({ revision }) => revision === event.revision - 1);
      event.metadata.prev_hash = before?.metadata.hash ?? event.metadata.prev_hash;
      const { inclusion: _, ...shown } = event;
      event.metadata.hash = shownEventHash(shown);
    }
}

const at = ({ events }: Page, revision: number): any =>
  events.find((event) => event.revision === revision);

const LIES: [string, Lie, string | RegExp][] = [
  [
    'another text',
    (page) => {
      if (!page.proof) at(page, 2).data.output.text = 'What was never said.';
    },
    'The event at revision 2 has another output than was recorded.',
  ],
  [
    'another time',
    (page) => (at(page, 2).metadata.recorded_at = '2020-01-01T00:00:00.000Z'),
    'The event at revision 2 does not match its hash.',
  ],
  [
    'other facts, with all hashes computed anew',
    (page) => {
      at(page, 2).data.finish_reason = 'forged';
      rechain(page.events, 2);
    },
    'The event at revision 2 is not in the log.',
  ],
  [
    'a plain text instead of a protected one',
    (page) => (at(page, 2).data.output = 'What was never said.'),
    'The event at revision 2 has a output without a commitment.',
  ],
  [
    'one event less',
    (page) => page.events.splice(2, 1),
    'The event at revision 2 has another revision.',
  ],
  [
    'one event more',
    (page) => {
      const last = structuredClone(page.events.at(-1));
      page.events.push({ ...last, id: crypto.randomUUID(), revision: last.revision + 1 });
      rechain(page.events, last.revision + 1);
      if (page.proof) page.proof.revision += 1;
    },
    'The event at revision 5 is not in the log.',
  ],
  [
    'two events in another order',
    (page) => page.events.splice(1, 2, page.events[2], page.events[1]),
    'The event at revision 1 has another revision.',
  ],
  [
    'the events of another session',
    (page) => {
      for (const event of page.events) event.stream = 'session-another';
    },
    'The event at revision 0 belongs to another session.',
  ],
  [
    'a checkpoint that was not signed',
    ({ proof }) => {
      if (!proof) return;
      const [origin, size] = proof.checkpoint.split('\n');
      const root = Buffer.alloc(32, 7).toString('base64');
      const signatures = proof.checkpoint.slice(proof.checkpoint.indexOf('\n\n'));
      proof.checkpoint = `${origin}\n${size}\n${root}${signatures}`;
    },
    /^The checkpoint of \d+ events is not signed by /,
  ],
];

describe.each(await forgedStores())('a browser of a service on $name', ({ start }) => {
  let session: TestSession;
  let trust: Trust & { pinned: Checkpoint };
  beforeAll(async () => {
    service = await start({ text: 'What was said.' });
    session = await converse(service, 2);
    const { body } = await eventually(
      () => service.get(`/v1/sessions/${session.session}/proof`),
      ({ status }) => status === 200,
    );
    const { out: vkey } = await startCliWith(service.env, 'audit', 'vkey').ended;
    trust = { keys: await readKeys(vkey), pinned: readCheckpoint(body.data.checkpoint) };
  });
  afterAll(() => service.close());

  const verify = (trusted: Trust = trust) =>
    verifySession({
      ...reads.sessionFromService(session.session, new AbortController().signal),
      trust: trusted,
      accept: checkpointVerifier(trusted, reads.readTree),
      signal: new AbortController().signal,
      onProgress: () => undefined,
    });

  const mismatch = (): Promise<Mismatch> =>
    verify().then(
      () => {
        throw new Error('it was verified');
      },
      (error: unknown) => error as Mismatch,
    );

  test.each([['the truth', undefined, ''], ...LIES] as [
    string,
    Lie | undefined,
    string | RegExp,
  ][])('that is shown %s', async (_what, shown, finding) => {
    lie = shown;
    try {
      if (!shown) {
        const { chain, pinnedEvents } = await verify();
        expect([chain.events, chain.texts.redacted, pinnedEvents]).toEqual([5, 0, 5]);
        expect(chain.texts.disclosed).toBeGreaterThan(4);
        return;
      }
      const { message, details } = await mismatch();
      expect(message).toMatch(finding);
      expect(details.meaning).not.toBe('');
      const [, revision] = /revision (\d+)/.exec(message) ?? [];
      expect(details.event?.revision).toBe(revision === undefined ? undefined : Number(revision));
    } finally {
      lie = undefined;
    }
  });

  test('that is shown an older log than the one of its pinned checkpoint', async () => {
    const newer = { ...trust.pinned, size: trust.pinned.size + 1_000 };
    await expect(verify({ keys: [], pinned: newer })).rejects.toThrow(
      /^The log has \d+ events, and a checkpoint before it had \d+/,
    );
  });

  // docs/proof.md: a proof does not show that a session has not continued.
  test('that is not shown the end of a session notices it by the number of events alone', async () => {
    await run(service, session.agent, 'The end.', session.session);
    await eventually(
      () => service.get(`/v1/sessions/${session.session}/proof`),
      ({ status, body }) => status === 200 && body.data.revision === 6,
    );
    lie = (page) => {
      page.events.splice(5);
      if (page.proof) page.proof.revision = 4;
    };
    try {
      expect((await verify()).chain.events).toBe(5);
    } finally {
      lie = undefined;
    }
  });
});
