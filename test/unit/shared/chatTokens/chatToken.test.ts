import { expect, test } from '@jest/globals';
import {
  hashChatUser,
  isAuthenticChatToken,
  looksLikeChatToken,
  parseChatToken,
  signChatToken,
} from '../../../../shared/chatTokens/chatToken.ts';
import { wordsKeyId } from '../../../../shared/search/wordTokens.ts';
import { memoryKeys } from '../../../support/fakes/memoryKeys.ts';

const CLAIMS = {
  key_id: 'key_01kahz0b2re5v8k2s4n6t8w0y2',
  agent_id: 'agent_1',
  user_hmac: 'u',
  expires_at: 1,
};

test('a token of one process is authentic in another one, and in no other account', async () => {
  const { open } = memoryKeys();
  const token = (await signChatToken(open(), 'acct_1', CLAIMS))!;
  expect(looksLikeChatToken(token)).toBe(true);
  const parsed = parseChatToken(token)!;
  expect(parsed.claims).toEqual(CLAIMS);
  expect(await isAuthenticChatToken(open(), 'acct_1', parsed)).toBe(true);
  expect(await isAuthenticChatToken(open(), 'acct_2', parsed)).toBe(false);
  expect(await isAuthenticChatToken(memoryKeys().keys, 'acct_1', parsed)).toBe(false);
});

test('a user is the same in every process, and another one in every account', async () => {
  const { open } = memoryKeys();
  const hash = await hashChatUser(open(), 'acct_1', 'ada');
  expect(await hashChatUser(open(), 'acct_1', 'ada')).toBe(hash);
  expect(await hashChatUser(open(), 'acct_2', 'ada')).not.toBe(hash);
  expect(await hashChatUser(open(), 'acct_1', 'bob')).not.toBe(hash);
});

test('the MAC of a user is no MAC of a token', async () => {
  const { keys } = memoryKeys();
  const signed = Buffer.from(JSON.stringify(CLAIMS)).toString('base64url');
  const asUser = await hashChatUser(keys, 'acct_1', signed);
  const parsed = parseChatToken(`tlc_${signed}.${asUser}`)!;
  expect(await isAuthenticChatToken(keys, 'acct_1', parsed)).toBe(false);
});

test('the erasure of the account ends its tokens, and no more are signed', async () => {
  const { keys, open, kept } = memoryKeys();
  const token = (await signChatToken(keys, 'acct_1', CLAIMS))!;
  kept.set(wordsKeyId('acct_1'), 'destroyed');
  const later = open();
  expect(await isAuthenticChatToken(later, 'acct_1', parseChatToken(token)!)).toBe(false);
  expect(await signChatToken(later, 'acct_1', CLAIMS)).toBeUndefined();
  expect(await hashChatUser(later, 'acct_1', 'ada')).toBeUndefined();
});

test('a token that names no id of a key is none, so that no database reads what it names', () => {
  const naming = (key_id: unknown): string =>
    `tlc_${Buffer.from(JSON.stringify({ ...CLAIMS, key_id })).toString('base64url')}.${'A'.repeat(43)}`;
  expect(parseChatToken(naming(CLAIMS.key_id))?.claims.key_id).toBe(CLAIMS.key_id);
  for (const key_id of ['key_\u0000', `${CLAIMS.key_id}\u0000`, '\ud800', '', 'key_1', 7, {}])
    expect(parseChatToken(naming(key_id))).toBeUndefined();
});
