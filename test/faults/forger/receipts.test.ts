/** Receipts of erasures that are forged, altered, of another log or of another stream. */
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startCliWith } from '../../support/processes/cliProcess.ts';
import { eventually } from '../../support/processes/operator.ts';
import { forgedStores, type ForgedService } from '../../support/stores/forger/forgedService.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

interface Receipt {
  turnlog_receipt: number;
  subject: { stream: string; kind: string; id: string };
  events: number;
  event: {
    id: string;
    stream: string;
    revision: number;
    type: string;
    data: Record<string, unknown>;
    metadata: Record<string, unknown> & { hash: string };
  };
  leaf: { hash: string; index: number };
  proof: string;
}

type Alter = (receipt: Receipt, other: Receipt) => void;

const OTHER_CONTENT = /hash of its event does not match/;

/** Each alteration, and what the refusal says. */
const ALTERATIONS: Record<string, [Alter, RegExp]> = {
  'names another session': [
    ({ subject }, other) => void Object.assign(subject, other.subject),
    /its subject another one/,
  ],
  'names another session everywhere': [
    (receipt, { subject }) => {
      receipt.subject = subject;
      receipt.event.stream = subject.stream;
    },
    OTHER_CONTENT,
  ],
  'names another kind': [({ subject }) => void (subject.kind = 'agent'), /its subject another one/],
  'counts other events': [(receipt) => void (receipt.events += 1), /counts \d+ events/],
  'counts other events everywhere': [
    (receipt) => {
      receipt.events += 1;
      receipt.event.revision += 1;
    },
    OTHER_CONTENT,
  ],
  'says another time': [
    ({ event }) => void (event.metadata['recorded_at'] = '2020-01-01T00:00:00.000Z'),
    OTHER_CONTENT,
  ],
  'says another person': [
    ({ event }) => void (event.metadata['key_id'] = 'key_of_somebody_else'),
    OTHER_CONTENT,
  ],
  'says another reason': [({ event }) => void (event.data['reason'] = 'retention'), OTHER_CONTENT],
  'shows a text': [
    ({ event }) =>
      void (event.data['note'] = { sha256: 'a'.repeat(64), salt: 'A'.repeat(22), text: 'never' }),
    /not committed to/,
  ],
  'has the leaf of another erasure': [
    (receipt, { leaf, proof }) => void Object.assign(receipt, { leaf, proof }),
    /its leaf is of another event/,
  ],
  'has the proof of another erasure': [
    (receipt, { proof }) => void (receipt.proof = proof),
    /names leaf \d+, and its proof leaf \d+/,
  ],
  'has another index': [
    (receipt) => {
      receipt.leaf.index -= 1;
      receipt.proof = receipt.proof.replace(/index \d+/, `index ${receipt.leaf.index}`);
    },
    /does not lead from the erasure to the checkpoint/,
  ],
  'has another tree size': [
    (receipt) =>
      void (receipt.proof = receipt.proof.replace(/\n(\d+)\n(?=[\w+/]{43}=\n\n—)/, '\n9$1\n')),
    /signature/,
  ],
  'calls another event an erasure': [
    ({ event }) => void (event.type = 'session.turn_failed.v1'),
    /which erases nothing/,
  ],
  'has more members': [
    (receipt) => void Object.assign(receipt, { verified: true }),
    /is no receipt of an erasure/,
  ],
};

describe.each(await forgedStores())(
  'the receipt of an erasure, with the log in $name',
  ({ start }) => {
    let service: ForgedService;
    let other: ForgedService;
    let folder: string;
    let vkey: string;
    let agent: string;
    let receipt: Receipt;
    let second: Receipt;

    const cli = (...args: string[]) => startCliWith(service.env, ...args).ended;
    /** Where there is neither service nor configuration. */
    const alone = (...args: string[]) => startCliWith({}, '--json', ...args).ended;
    const vkeyOf = async ({ env }: ForgedService): Promise<string> => {
      const { out } = await startCliWith(env, '--json', 'audit', 'vkey').ended;
      return (JSON.parse(out) as { vkeys: string[] }).vkeys[0]!;
    };

    async function receiptOf(id: string): Promise<Receipt> {
      const answer = await eventually(
        () => service.get(`/v1/erasures/${id}`),
        ({ status }) => status !== 503,
      );
      expect(answer.body).toMatchObject({ success: true });
      return answer.body.data as Receipt;
    }
    async function eraseSession(): Promise<Receipt> {
      const run = await service.post(`/v1/agents/${agent}/run`, { input: 'forget this' });
      const id = run.body.data.session_id as string;
      expect((await service.send('DELETE', `/v1/sessions/${id}`, '')).status).toBe(200);
      return receiptOf(id);
    }
    async function verify(text: string, key = vkey): Promise<{ code: number | null; found: any }> {
      const file = join(folder, 'receipt.json');
      await writeFile(file, text);
      const { code, out } = await alone('audit', 'verify-receipt', file, '--vkey', key);
      return { code, found: JSON.parse(out) };
    }

    beforeAll(async () => {
      folder = await temporaryFolder();
      [service, other] = await Promise.all([start(), start()]);
      await other.createAgent();
      agent = await service.createAgent();
      vkey = await vkeyOf(service);
      receipt = await eraseSession();
      second = await eraseSession();
    }, 60_000);
    afterAll(async () => {
      await Promise.all([service.close(), other.close()]);
      await rm(folder, { recursive: true });
    });

    test('names what was erased, and verifies without the service', async () => {
      expect(await verify(JSON.stringify(receipt, null, 2))).toEqual({
        code: 0,
        found: expect.objectContaining({
          fits: true,
          subject: receipt.subject,
          events: 3,
          index: receipt.leaf.index,
          reason: 'request',
        }),
      });
      expect(JSON.stringify(receipt)).not.toContain('forget this');
    });

    test.each(Object.keys(ALTERATIONS))('is refused when it %s', async (name) => {
      const [alter, message] = ALTERATIONS[name]!;
      const altered = structuredClone(receipt);
      alter(altered, second);
      const { code, found } = await verify(JSON.stringify(altered));
      expect([code, found]).toEqual([1, { fits: false, misfit: expect.stringMatching(message) }]);
    });

    test('is refused when a name stands in it twice, since readers differ in which counts', async () => {
      const text = JSON.stringify(receipt).replace('"events":', '"events":99,"events":');
      expect(JSON.parse(text)).toEqual(receipt);
      const { code, found } = await verify(text);
      expect([code, found.misfit]).toEqual([1, expect.stringContaining('each name stands once')]);
    });

    test('is refused with the key of another log', async () => {
      const { code, found } = await verify(JSON.stringify(receipt), await vkeyOf(other));
      expect([code, found.fits]).toEqual([1, false]);
    });

    test('can not be had of an erasure that was rewritten in the log; the one that was given stays', async () => {
      const { stream, id } = second.subject;
      const by = second.event.metadata['key_id'];
      service.forger.rewrite(stream, 3, ({ metadata }) => {
        metadata['key_id'] = 'key_of_somebody_else';
      });
      const { status, body } = await service.get(`/v1/erasures/${id}`);
      expect([status >= 400, body.data]).toEqual([true, undefined]);
      expect((await verify(JSON.stringify(second))).code).toBe(0);
      service.forger.rewrite(stream, 3, ({ metadata }) => {
        metadata['key_id'] = by;
      });
      service.forger.change(stream, 3, ({ metadata }) => {
        metadata['key_id'] = 'key_of_somebody_else';
      });
      expect(await service.get(`/v1/erasures/${id}`)).toMatchObject({
        status: 409,
        body: { code: 'stream_damaged', error: expect.stringContaining('revision 3 does not fit') },
      });
      service.forger.change(stream, 3, ({ metadata }) => {
        metadata['key_id'] = by;
      });
      expect(await receiptOf(id)).toMatchObject({ event: second.event });
    });

    test('is one of the agent, the account and what goes along with it, too', async () => {
      expect((await service.post(`/v1/agents/${agent}/erase`, {})).status).toBe(200);
      expect((await verify(JSON.stringify(await receiptOf(agent)))).found).toMatchObject({
        fits: true,
        subject: { kind: 'agent', id: agent },
      });
      const url = 'https://[3ffe::1]/x';
      const webhook = (await service.post('/v1/webhooks', { url })).body.data.webhook_id as string;
      const account = receipt.event.metadata['account_id'] as string;
      const erased = await cli('accounts', 'erase', account, '--confirm', account);
      expect(erased).toMatchObject({ code: 0 });
      for (const [kind, id] of [
        ['account', account],
        ['webhook', webhook],
      ] as const) {
        const file = join(folder, `${kind}.json`);
        await eventually(
          () => cli('audit', 'receipt', id, '--out', file),
          ({ code }) => code === 0,
        );
        const { found } = await verify(await readFile(file, 'utf8'));
        expect(found).toMatchObject({ fits: true, subject: { kind, id } });
      }
    }, 60_000);
  },
);
