import { describe, expect, jest, test } from '@jest/globals';
import { LIMITS } from '../../../../shared/limits.ts';
import type { UnreachableReason } from '../../../../shared/webhooks/webhookSender.ts';
import { limitLookups, requireWebhookUrl } from '../../../../shared/webhooks/webhookUrl.ts';

const reachable = async () => undefined;
const rules = (allowPrivate = false, findUnreachable = reachable) => ({
  allowPrivate,
  findUnreachable,
});
const refusal = (message: RegExp | string) => ({
  code: 'invalid_request',
  details: { url: { message: expect.stringMatching(message), path: '/url' } },
});

describe('the address of a webhook', () => {
  test.each([
    ['https://example.com/x', 'https://example.com/x'],
    ['https://EXAMPLE.com.:443/é', 'https://example.com./%C3%A9'],
    ['https://[2606:4700::1111]:8443/', 'https://[2606:4700::1111]:8443/'],
    [`https://${'a'.repeat(63)}.com/`, `https://${'a'.repeat(63)}.com/`],
  ])('is normalized: %s', async (url, normalized) => {
    expect(await requireWebhookUrl(rules(), 'acct_1', url)).toBe(normalized);
  });

  test.each([
    ['https://example.com:0/', /port 0/],
    ['https://receiver.invalid/', /never resolves/],
    ['https://INVALID./', /never resolves/],
    ['https://a.onion/', /never resolves/],
    [`https://${'a'.repeat(64)}.com/`, /labels/],
    [`https://${'a.'.repeat(127)}com/`, /labels/],
    ['https://a..com/', /labels/],
    ['https://./', /labels/],
    ['https://[fe80::1%25eth0]/', /absolute URL/],
    ['https://user@example.com/', /user or a password/],
    ['http://example.com/', /https:\/\/, unless the operator sets WEBHOOKS_ALLOW_PRIVATE/],
  ])('is refused without a look-up: %s', async (url, message) => {
    const findUnreachable = jest.fn(reachable);
    await expect(
      requireWebhookUrl(rules(false, findUnreachable), 'acct_1', url),
    ).rejects.toMatchObject(refusal(message));
    expect(findUnreachable).not.toHaveBeenCalled();
  });

  test.each<[UnreachableReason, RegExp]>([
    ['unknown_name', /host name that name servers know/],
    ['not_public', /private, loopback.*unless the operator sets WEBHOOKS_ALLOW_PRIVATE/],
  ])('is refused after a look-up: %s', async (reason, message) => {
    const { href } = new URL('https://example.com');
    const findUnreachable = async (url: string, accountId: string) =>
      url === href && accountId === 'acct_1' ? reason : undefined;
    await expect(
      requireWebhookUrl({ allowPrivate: false, findUnreachable }, 'acct_1', href),
    ).rejects.toMatchObject(refusal(message));
  });
});

test('look-ups at a time are limited for an account, which leaves room to others', async () => {
  const waiting: (() => void)[] = [];
  const find = limitLookups(async () => {
    await new Promise<void>((resolve) => waiting.push(resolve));
    return undefined;
  });
  const share = LIMITS.webhooks.lookups / 2;
  const all = Array.from({ length: share + 3 }, (_, nth) => find(`https://${nth}.example`, 'a'));
  await new Promise(setImmediate);
  expect(waiting).toHaveLength(share);
  const other = find('https://other.example', 'b');
  await new Promise(setImmediate);
  expect(waiting).toHaveLength(share + 1);
  for (let freed = 0; freed < share + 4; freed += 1) {
    waiting[freed]!();
    await new Promise(setImmediate);
  }
  await Promise.all([...all, other]);
});
