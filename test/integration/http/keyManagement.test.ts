import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { randomUUID } from 'node:crypto';
import { ACCOUNT_SCOPES, SCOPES, type Scope } from '../../../shared/accounts/events.ts';
import { expectFailure } from '../../support/http/failures.ts';
import {
  asOperator,
  clientWith,
  eventually,
  newKey,
  type IssuedKey,
} from '../../support/processes/operator.ts';
import {
  apiClient,
  startTestService,
  type Client,
  type TestService,
} from '../../support/http/service.ts';

let service: TestService;
/** Of an account of its own, with every scope. */
let owner: Client;
let ownerKey: IssuedKey;
beforeAll(async () => {
  service = await startTestService();
  ownerKey = await newKey(service.folder);
  owner = await clientWith(service.url, ownerKey);
});
afterAll(() => service.close());

const as = (key: string): Client => apiClient(service.url, key);
const keyed = () => ({ 'idempotency-key': randomUUID() });
const remove = (client: Client, key_id: string) => client.send('DELETE', `/v1/keys/${key_id}`, '');

interface Issued {
  key_id: string;
  api_key: string;
  expires_at: string | null;
}
async function issue(client: Client, scopes: readonly Scope[], more = {}): Promise<Issued> {
  const reply = await client.post('/v1/keys', { name: 'issued', scopes, ...more });
  expect([reply.status, reply.body.error]).toEqual([200, undefined]);
  return reply.body.data as Issued;
}
const listed = async (client: Client, query = ''): Promise<Record<string, unknown>[]> =>
  (await client.get(`/v1/keys${query}`)).body.data;
const find = async (client: Client, key_id: string) =>
  (await client.get(`/v1/keys/${key_id}`)).body.data;

/** The log of an account, as an auditor reads it. */
const eventsOf = (account_id: string) =>
  asOperator(service.folder, async ({ store }) =>
    (
      await store.readStream(`account-${account_id}`, { direction: 'forwards', from: 0, limit: 99 })
    ).map(({ type, metadata, data }) => ({
      type,
      data: JSON.parse(data) as Record<string, unknown>,
      metadata: JSON.parse(metadata) as Record<string, unknown>,
    })),
  );

async function filesContain(folder: string, text: string): Promise<boolean> {
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    // Temporary files vanish meanwhile.
    const bytes = await readFile(join(entry.parentPath, entry.name)).catch(() => Buffer.alloc(0));
    if (bytes.includes(text)) return true;
  }
  return false;
}

describe('an issued key', () => {
  test('works at once, does what its scopes allow, and names the key that issued it', async () => {
    const { api_key, key_id } = await issue(owner, ['agents:read']);
    expect((await as(api_key).get('/v1/agents')).status).toBe(200);
    expectFailure(await as(api_key).post('/v1/agents', {}), 'forbidden');
    expectFailure(await as(api_key).get('/v1/keys'), 'forbidden');
    expect(await find(owner, key_id)).toEqual({
      key_id,
      name: 'issued',
      scopes: ['agents:read'],
      issued_at: expect.any(String),
      issued_by: ownerKey.key_id,
      expires_at: null,
      state: 'active',
      replaced_by: null,
      revoked_at: null,
      revoked_by: null,
    });
    const event = (await eventsOf(ownerKey.account_id)).find(
      ({ data }) => data['key_id'] === key_id,
    );
    expect(event).toMatchObject({
      type: 'account.key_issued.v1',
      metadata: { key_id: ownerKey.key_id, account_id: ownerKey.account_id },
    });
  });

  test('is shown once: not when the request is repeated, not in lists, and in no file', async () => {
    const headers = keyed();
    const body = { name: 'once', scopes: ['agents:read'] };
    const first = await owner.post('/v1/keys', body, headers);
    expect(first.headers.get('cache-control')).toContain('no-store');
    const { api_key, ...shown } = first.body.data;
    expect(first.headers.get('location')).toBe(`/v1/keys/${shown.key_id}`);
    expect(api_key).toMatch(/^tl_key_\w{26}_[0-9a-f]{64}$/);
    const again = await owner.post('/v1/keys', body, headers);
    expect(again.headers.get('idempotency-replayed')).toBe('true');
    expect(again.body.data).toEqual({ ...shown, api_key: null });
    expect((await listed(owner)).filter(({ name }) => name === 'once')).toHaveLength(1);
    const secret = (api_key as string).slice(-64);
    expect(JSON.stringify(await listed(owner))).not.toContain(secret);
    expect(JSON.stringify(await listed(owner))).not.toContain('hash');
    expect(await filesContain(service.folder, secret)).toBe(false);
    expect((await as(api_key).get('/v1/agents')).status).toBe(200);
  });

  test('of requests sent at once under one Idempotency-Key is issued once and shown to one', async () => {
    const headers = keyed();
    const body = { name: 'race', scopes: ['agents:read'] };
    const replies = await Promise.all(
      [1, 2, 3, 4].map(() => owner.post('/v1/keys', body, headers)),
    );
    const shown = replies.filter(({ body: { data } }) => typeof data?.api_key === 'string');
    expect(shown).toHaveLength(1);
    for (const { status } of replies) expect([200, 409]).toContain(status);
    expect((await listed(owner)).filter(({ name }) => name === 'race')).toHaveLength(1);
  });

  test('ends when it says', async () => {
    const { expires_at, key_id } = await issue(owner, ['agents:read'], {
      expires_in_seconds: 3600,
    });
    const { issued_at } = await find(owner, key_id);
    const lifetime = Date.parse(expires_at!) - Date.parse(issued_at);
    expect(lifetime).toBeGreaterThan(3_000_000);
    expect(lifetime).toBeLessThanOrEqual(3_600_000);
    const { api_key, key_id: brief } = await issue(owner, ['agents:read'], {
      expires_in_seconds: 1,
    });
    const refused = await eventually(
      () => as(api_key).get('/v1/agents'),
      ({ status }) => status !== 200,
    );
    expectFailure(refused, 'unauthorized');
    expect(await find(owner, brief)).toMatchObject({ state: 'expired' });
    const active = await listed(owner, '?state=active');
    expect(active.map(({ key_id: id }) => id)).not.toContain(brief);
  });

  test.each([
    ['without scopes', { name: 'x' }, 'scopes'],
    ['with no scope', { name: 'x', scopes: [] }, 'scopes'],
    ['with an unknown scope', { name: 'x', scopes: ['root'] }, 'scopes/0'],
    ['with a scope twice', { name: 'x', scopes: ['agents:read', 'agents:read'] }, 'scopes'],
    ['without a name', { scopes: ['agents:read'] }, 'name'],
    ['with a name of blanks', { name: ' ', scopes: ['agents:read'] }, 'name'],
    [
      'with a chosen key',
      { name: 'x', scopes: ['agents:read'], api_key: 'k'.repeat(64) },
      'api_key',
    ],
    [
      'in another account',
      { name: 'x', scopes: ['agents:read'], account_id: 'acct' },
      'account_id',
    ],
    [
      'for no time',
      { name: 'x', scopes: ['agents:read'], expires_in_seconds: 0 },
      'expires_in_seconds',
    ],
  ])('is refused %s', async (_what, body, field) => {
    const failure = expectFailure(await owner.post('/v1/keys', body), 'invalid_request');
    expect(Object.keys(failure.details!).join()).toContain(field.split('/')[0]);
  });
});

describe('a key with keys:write', () => {
  test('issues and rotates no key with a scope beyond its own, and nothing is recorded', async () => {
    const manager = as((await issue(owner, ['keys:write', 'agents:read'])).api_key);
    const strong = await issue(owner, ['agents:read', 'sessions:erase']);
    const before = await eventsOf(ownerKey.account_id);
    const asked = { name: 'more', scopes: ['agents:read', 'audit:read', 'accounts:write'] };
    const failure = expectFailure(await manager.post('/v1/keys', asked, keyed()), 'forbidden');
    expect(failure.error).toContain('audit:read, accounts:write');
    for (const key_id of [strong.key_id, ownerKey.key_id]) {
      expectFailure(await manager.post(`/v1/keys/${key_id}/rotate`, {}, keyed()), 'forbidden');
      expectFailure(await remove(manager, key_id), 'forbidden');
    }
    expect(await eventsOf(ownerKey.account_id)).toEqual(before);
    expect((await as(strong.api_key).get('/v1/agents')).status).toBe(200);
  });

  test('that expires issues no key that outlives it', async () => {
    const mortal = await issue(owner, ['keys:write'], { expires_in_seconds: 600 });
    for (const more of [{}, { expires_in_seconds: 601 }]) {
      const asked = { name: 'x', scopes: ['keys:write'], ...more };
      const failure = expectFailure(
        await as(mortal.api_key).post('/v1/keys', asked),
        'invalid_request',
      );
      expect(failure.details).toHaveProperty('expires_in_seconds');
      expect(failure.error).toContain(mortal.expires_at!);
    }
    await issue(as(mortal.api_key), ['keys:write'], { expires_in_seconds: 60 });
    const longer = await as(mortal.api_key).post(`/v1/keys/${mortal.key_id}/rotate`, {
      expires_in_seconds: 601,
    });
    expectFailure(longer, 'invalid_request');
  });

  test('lists, rotates and revokes no key of another account: it is as unknown as one that never was', async () => {
    const foreign = await newKey(service.folder);
    const other = await clientWith(service.url, foreign);
    expect((await listed(owner)).map(({ key_id }) => key_id)).not.toContain(foreign.key_id);
    for (const key_id of [foreign.key_id, 'key_01kahz0b2re5v8k2s4n6t8w0y2', 'x', 'operator']) {
      expectFailure(await owner.get(`/v1/keys/${key_id}`), 'key_not_found');
      expectFailure(await owner.post(`/v1/keys/${key_id}/rotate`, {}, keyed()), 'key_not_found');
      expectFailure(await remove(owner, key_id), 'key_not_found');
    }
    expect((await other.get('/v1/agents')).status).toBe(200);
  });

  test('lists by page, oldest first', async () => {
    const all = (await listed(owner, '?limit=1000')).map(({ key_id }) => key_id as string);
    expect(all).toEqual(all.toSorted());
    const first = await owner.get('/v1/keys?limit=2');
    expect(first.body.data).toHaveLength(2);
    const next = /<([^>]+)>; rel="next"/.exec(first.headers.get('link') ?? '')![1]!;
    expect((await owner.get(next)).body.data[0].key_id).toBe(all[2]);
    expect(all).toContain(ownerKey.key_id);
  });
});

describe('a revoked key', () => {
  test('is refused at once, ends its streams, and stays in the list with who revoked it', async () => {
    const { api_key, key_id } = await issue(owner, ['agents:read', 'events:read']);
    const stream = await fetch(`${service.url}/v1/events`, {
      headers: { 'x-api-key': api_key, accept: 'text/event-stream' },
    });
    expect(stream.status).toBe(200);
    expect((await remove(owner, key_id)).body.data).toEqual({ key_id });
    expectFailure(await as(api_key).get('/v1/agents'), 'unauthorized');
    // Ends only when the server closes it.
    await stream.text();
    expect(await find(owner, key_id)).toMatchObject({
      state: 'revoked',
      revoked_by: ownerKey.key_id,
      revoked_at: expect.any(String),
    });
    const events = await eventsOf(ownerKey.account_id);
    expect((await remove(owner, key_id)).status).toBe(200);
    expect(await eventsOf(ownerKey.account_id)).toEqual(events);
  }, 20_000);

  test('can have revoked itself, unless it was the last that could issue keys', async () => {
    const sole = await newKey(service.folder, { scopes: ['keys:write', 'agents:read'] });
    const client = await clientWith(service.url, sole);
    expectFailure(await remove(client, sole.key_id), 'last_key');
    await issue(client, ['agents:read']);
    expectFailure(await remove(client, sole.key_id), 'last_key');
    const second = await issue(client, ['keys:write']);
    expect((await remove(client, sole.key_id)).body.data).toEqual({ key_id: sole.key_id });
    expectFailure(await client.get('/v1/keys'), 'unauthorized');
    expectFailure(await remove(as(second.api_key), second.key_id), 'last_key');
  });
});

describe('a rotated key', () => {
  test('stays valid for the overlap beside its successor, which has its name and scopes', async () => {
    const old = await issue(owner, ['agents:read'], { name: 'deploy' });
    const reply = await owner.post(`/v1/keys/${old.key_id}/rotate`, { overlap_seconds: 600 });
    const { api_key, key_id, replaces, name, scopes } = reply.body.data;
    expect({ name, scopes }).toEqual({ name: 'deploy', scopes: ['agents:read'] });
    expect((await as(old.api_key).get('/v1/agents')).status).toBe(200);
    expect((await as(api_key).get('/v1/agents')).status).toBe(200);
    const { expires_at, replaced_by, state } = await find(owner, old.key_id);
    expect({ expires_at, replaced_by, state }).toEqual({
      expires_at: replaces.expires_at,
      replaced_by: key_id,
      state: 'active',
    });
  });

  test('without an overlap is revoked at once, the last one that can issue keys included', async () => {
    const sole = await newKey(service.folder, { scopes: ['keys:write'] });
    const client = await clientWith(service.url, sole);
    const reply = await client.post(`/v1/keys/${sole.key_id}/rotate`, {
      overlap_seconds: 0,
    });
    expect(reply.status).toBe(200);
    expectFailure(await client.get('/v1/keys'), 'unauthorized');
    const successor = as(reply.body.data.api_key);
    expect(await listed(successor)).toMatchObject([
      { key_id: sole.key_id, state: 'revoked', replaced_by: reply.body.data.key_id },
      { key_id: reply.body.data.key_id, state: 'active', issued_by: sole.key_id },
    ]);
    const again = await successor.post(`/v1/keys/${sole.key_id}/rotate`, {});
    expectFailure(again, 'key_inactive');
  });

  test('whose successor was lost replaces it by one that lives on', async () => {
    const sole = await newKey(service.folder, { scopes: ['keys:write'] });
    const client = await clientWith(service.url, sole);
    const lost = (await client.post(`/v1/keys/${sole.key_id}/rotate`, {})).body.data.key_id;
    const reply = await client.post(`/v1/keys/${lost}/rotate`, { overlap_seconds: 0 });
    expect(reply.body.data).toMatchObject({ issued_by: sole.key_id, expires_at: null });
    const successor = as(reply.body.data.api_key);
    expect(await find(successor, reply.body.data.key_id)).toMatchObject({ expires_at: null });
    const other = await client.post(`/v1/keys/${sole.key_id}/rotate`, {});
    expect(other.body.data).toMatchObject({ expires_at: null });
    expect(await find(successor, other.body.data.key_id)).toMatchObject({ expires_at: null });
  });

  test('by another key does not outlive its overlap by rotating itself or its successor', async () => {
    const leaked = await newKey(service.folder, { scopes: ['keys:write'] });
    const thief = await clientWith(service.url, leaked);
    const admin = as((await issue(thief, ['keys:write'])).api_key);
    const rotated = await admin.post(`/v1/keys/${leaked.key_id}/rotate`, {});
    const { key_id } = rotated.body.data;
    for (const id of [leaked.key_id, key_id]) {
      const reply = await thief.post(`/v1/keys/${id}/rotate`, { overlap_seconds: 0 });
      expect(expectFailure(reply, 'invalid_request').error).toContain('must end at');
    }
    expect(await find(admin, key_id)).toMatchObject({ state: 'active', replaced_by: null });
  });

  test('is rotated once by a repeated request, which does not show the new key again', async () => {
    const old = await issue(owner, ['agents:read']);
    const headers = keyed();
    const rotate = () => owner.send('POST', `/v1/keys/${old.key_id}/rotate`, '', headers);
    const [first, again] = [await rotate(), await rotate()];
    const { expires_at } = first.body.data.replaces;
    const { issued_at } = first.body.data;
    expect(Date.parse(expires_at) - Date.parse(issued_at)).toBeGreaterThan(3_000_000);
    expect(again.body.data).toEqual({ ...first.body.data, api_key: null });
    expect(again.headers.get('idempotency-replayed')).toBe('true');
  });
});

describe('an account', () => {
  test('is opened with a first key, which has no scope beyond an account', async () => {
    const headers = keyed();
    const reply = await service.post('/v1/accounts', { name: 'Example' }, headers);
    expect(reply.headers.get('cache-control')).toContain('no-store');
    const { account_id, key, name } = reply.body.data;
    expect(name).toBe('Example');
    expect(key.scopes).toEqual([...ACCOUNT_SCOPES, 'keys:write']);
    const client = as(key.api_key);
    expect((await client.get('/v1/agents')).body.data).toEqual([]);
    expectFailure(await client.get('/v1/accounts'), 'forbidden');
    const more = { name: 'x', scopes: ['accounts:write'] };
    expectFailure(await client.post('/v1/keys', more), 'forbidden');
    expectFailure(await service.get(`/v1/keys/${key.key_id}`), 'key_not_found');
    const again = await service.post('/v1/accounts', { name: 'Example' }, headers);
    expect(again.body.data).toEqual({ ...reply.body.data, key: { ...key, api_key: null } });
    const [opened, issued] = await eventsOf(account_id);
    expect([opened!.type, issued!.type]).toEqual(['account.opened.v1', 'account.key_issued.v1']);
    expect(opened!.metadata['key_id']).toBe(key.issued_by);
    expect(await filesContain(service.folder, key.api_key.slice(-64))).toBe(false);
  });

  test('is listed by page for keys that open accounts, and refused to all others', async () => {
    const rows = (await service.get('/v1/accounts?limit=1000')).body.data;
    expect(rows.map(({ account_id }: { account_id: string }) => account_id)).toContain(
      ownerKey.account_id,
    );
    const page = await service.get('/v1/accounts?limit=1');
    expect(page.body.data).toHaveLength(1);
    expect(page.headers.get('link')).toContain('rel="next"');
    const others = SCOPES.filter((scope) => scope !== 'accounts:write');
    const lesser = as((await issue(owner, others)).api_key);
    expectFailure(await lesser.post('/v1/accounts', { name: 'x' }), 'forbidden');
  });
});
