import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createWebhookSender } from '../../../../infra/web/webhookSender.ts';
import {
  startReceiver,
  verified,
  type Receiver,
} from '../../../support/servers/webhookReceiver.ts';

const { signal } = new AbortController();
const secret = `whsec_${Buffer.from('k'.repeat(32)).toString('base64')}`;
const body = JSON.stringify({ id: 'e1', text: 'é' });

let receiver: Receiver;
beforeEach(async () => {
  receiver = await startReceiver();
});
afterEach(() => receiver.close());

const send = (url = receiver.url, options: object = {}) =>
  createWebhookSender({ allowPrivate: true, ...options })({
    url,
    secret,
    id: 'e1',
    body,
    signal,
  });

describe('a message', () => {
  test('is posted as it is, signed so that the library takes it, and no other secret', async () => {
    expect(await send()).toEqual({ accepted: true, status: 204 });
    const [message] = receiver.received;
    expect(message!.text).toBe(body);
    expect(verified(message!, secret)).toEqual(JSON.parse(body));
    expect(message!.headers).toMatchObject({
      'webhook-id': 'e1',
      'content-type': 'application/json; charset=utf-8',
    });
    expect(() => verified(message!, `whsec_${'A'.repeat(44)}`)).toThrow();
  });

  test.each([
    [200, {}, { accepted: true, status: 200 }],
    [302, { location: 'https://example.com/' }, { reason: 'The receiver answered 302.' }],
    [400, {}, { status: 400, reason: 'The receiver answered 400.' }],
    [410, {}, { status: 410, gone: true }],
    [429, { 'retry-after': '7' }, { retryAfterMs: 7_000 }],
    [503, { 'retry-after': 'soon' }, { accepted: false }],
  ])('that is answered %i %j came to %j', async (status, headers, outcome) => {
    receiver.answer(status, headers);
    expect(await send()).toMatchObject(outcome);
    expect(receiver.received).toHaveLength(1);
  });

  test.each([
    [200, { 'content-length': '5' }, { accepted: true, status: 200 }],
    [200, { 'content-encoding': 'unknown' }, { accepted: true, status: 200 }],
    [410, { 'content-encoding': 'unknown' }, { status: 410, gone: true }],
  ])(
    'that is answered %i %j without a readable body came to %j',
    async (status, headers, outcome) => {
      receiver.answer(status, headers);
      expect(await send(receiver.url, { answerMs: 3_000 })).toMatchObject(outcome);
      expect(receiver.received).toHaveLength(1);
    },
  );

  test('that has no answer in time was not taken', async () => {
    receiver.answer(undefined);
    expect(await send(receiver.url, { answerMs: 300 })).toEqual({
      accepted: false,
      reason: 'The server did not answer within 0.3 s.',
    });
  });

  test('goes to no address that is not public, whatever its name says', async () => {
    const { port } = new URL(receiver.url);
    const resolve = async () => ['127.0.0.1'];
    const options = { allowPrivate: false, resolve };
    for (const url of [receiver.url, `http://public.example:${port}/hook`])
      expect(await send(url, options)).toMatchObject({
        accepted: false,
        reason: expect.stringContaining('not public'),
      });
    expect(receiver.received).toEqual([]);
  });

  test('that is cut off says so', async () => {
    const cut = new AbortController();
    const sending = createWebhookSender({ allowPrivate: true })({
      url: receiver.url,
      secret,
      id: 'e1',
      body,
      signal: cut.signal,
    });
    cut.abort(new Error('cut'));
    await expect(sending).rejects.toThrow('cut');
  });
});
