import { describe, expect, test } from '@jest/globals';
import { account, type AccountCommand } from '../../../../shared/accounts/decider.ts';
import { recordedScopes, scopesOf, type Scope } from '../../../../shared/accounts/events.ts';
import { KEY_LIMITS } from '../../../../shared/accounts/limits.ts';
import { replay, specification } from '../../../support/builders/deciderSpecification.ts';
import {
  accountOpened,
  keyData,
  keyIssued,
  keyRevoked,
  keyRotated,
} from '../../../support/builders/events.ts';

const given = specification(account);
const NOW = Date.parse('2026-01-01T00:00:00.000Z');
const at = (seconds: number): string => new Date(NOW + seconds * 1_000).toISOString();
const hashOf = (key_id: string): string => key_id.padEnd(64, '0');

const grant = (scopes: Scope[], expires_at: string | null = null) => ({
  ...recordedScopes(scopes),
  expires_at,
});
const key = (key_id: string, scopes: Scope[], expires_at: string | null = null) =>
  keyData(key_id, { hash: hashOf(key_id), ...grant(scopes, expires_at) });
const issued = (key_id: string, scopes: Scope[], expires_at: string | null = null) =>
  keyIssued(key_id, { hash: hashOf(key_id), ...grant(scopes, expires_at) });

const opened = accountOpened();
const by = { key_id: 'key_m', now: NOW };
const manager = issued('key_m', ['keys:write', 'agents:read']);

const issue = (scopes: Scope[], expires_at: string | null = null): AccountCommand => ({
  type: 'issue_key',
  key: key('key_n', scopes, expires_at),
  by,
});
const revoke = (key_id: string): AccountCommand => ({ type: 'revoke_key', key_id, by });
const rotate = (
  key_id: string,
  { overlap = 0, expires_at }: { overlap?: number; expires_at?: string } = {},
): AccountCommand => ({
  type: 'rotate_key',
  key_id,
  rotation: {
    key: { key_id: 'key_n', hash: hashOf('key_n') },
    now: NOW,
    until: at(overlap),
    expires_at,
  },
  by,
});

describe('the scopes of a key', () => {
  test('are recorded so that earlier releases ignore those that they do not know', () => {
    const scopes: Scope[] = ['keys:write', 'agents:read', 'metrics:read', 'accounts:write'];
    expect(recordedScopes(scopes)).toEqual({
      scopes: ['agents:read'],
      process_scopes: ['metrics:read'],
      management_scopes: ['keys:write', 'accounts:write'],
    });
    expect(new Set(scopesOf(recordedScopes(scopes)))).toEqual(new Set(scopes));
  });
});

describe('a key that issues another one', () => {
  test('grants its own scopes, and no others', () => {
    given(opened, manager)
      .when(issue(['agents:read', 'keys:write']))
      .then(issued('key_n', ['agents:read', 'keys:write']));
    for (const scope of ['agents:write', 'metrics:read', 'accounts:write'] as const)
      given(opened, manager)
        .when(issue(['agents:read', scope]))
        .thenRejected('key_scopes_exceeded');
  });

  test('grants no longer life than its own', () => {
    const mortal = issued('key_m', ['keys:write'], at(60));
    given(opened, mortal)
      .when(issue(['keys:write'], at(60)))
      .then(issued('key_n', ['keys:write'], at(60)));
    for (const end of [at(61), null])
      given(opened, mortal)
        .when(issue(['keys:write'], end))
        .thenRejected('key_outlives_manager');
  });

  test('is rejected once it is revoked or expired, or without keys:write, whatever read models say', () => {
    const command = issue(['agents:read']);
    given(opened, manager, keyRevoked('key_m')).when(command).thenRejected('manager_invalid');
    given(opened, issued('key_m', ['keys:write'], at(0)))
      .when(command)
      .thenRejected('manager_invalid');
    given(opened, issued('key_m', ['agents:read']))
      .when(command)
      .thenRejected('manager_invalid');
    given(opened).when(command).thenRejected('manager_invalid');
  });

  test('issues as many valid keys as an account may have: revoked and expired ones do not count', () => {
    const { active } = KEY_LIMITS.keys;
    const others = (count: number) =>
      Array.from({ length: count }, (_, index) => issued(`key_${index}`, ['agents:read']));
    const full = [opened, manager, ...others(active - 1)];
    given(...full)
      .when(issue(['agents:read']))
      .thenRejected('key_limit');
    given(...full, keyRevoked('key_0'))
      .when(issue(['agents:read']))
      .then(issued('key_n', ['agents:read']));
    given(opened, manager, ...others(active - 2), issued('key_e', ['agents:read'], at(-1)))
      .when(issue(['agents:read']))
      .then(issued('key_n', ['agents:read']));
    given(...full)
      .when(rotate('key_0', { overlap: 1 }))
      .thenRejected('key_limit');
    const replay0 = account.decide(rotate('key_0'), replay(account, full));
    expect(replay0.map(({ type }) => type)).toContain('account.key_revoked.v1');
  });

  test('issues no key once the account has had as many as it may, and an operator still does', () => {
    const ended = Array.from({ length: KEY_LIMITS.keys.issued }, (_, index) => ({
      ...key(`key_${index}`, ['agents:read']),
      revoked: true,
    }));
    const state = { ...replay(account, [opened, manager]) };
    const full = { ...state, keys: [...ended.slice(1), ...state.keys] };
    expect(() => account.decide(issue(['agents:read']), full)).toThrow('only an operator');
    const operators = { type: 'issue_key', key: key('key_n', ['agents:read']) } as const;
    expect(account.decide(operators, full)).toEqual([issued('key_n', ['agents:read'])]);
  });
});

describe('a key that revokes a key', () => {
  test('revokes keys without more scopes than its own', () => {
    const lesser = issued('key_l', ['agents:read']);
    given(opened, manager, lesser)
      .when(revoke('key_l'))
      .then(keyRevoked('key_l', { hash: hashOf('key_l'), ...grant(['agents:read']) }));
    given(opened, manager, issued('key_g', ['agents:write']))
      .when(revoke('key_g'))
      .thenRejected('key_scopes_exceeded');
    given(opened, manager).when(revoke('key_x')).thenRejected('key_unknown');
  });

  test('revokes itself only while another valid key can issue keys', () => {
    given(opened, manager).when(revoke('key_m')).thenRejected('last_manager');
    const second = issued('key_2', ['keys:write']);
    given(opened, manager, second, keyRevoked('key_2'))
      .when(revoke('key_m'))
      .thenRejected('last_manager');
    given(opened, manager, issued('key_2', ['keys:write'], at(0)))
      .when(revoke('key_m'))
      .thenRejected('last_manager');
    expect(
      account.decide(revoke('key_m'), replay(account, [opened, manager, second])),
    ).toHaveLength(1);
  });
});

describe('a rotation', () => {
  const old = issued('key_o', ['agents:read']);

  test('issues a key with the same name and scopes, and ends the old one after the overlap', () => {
    given(opened, manager, old)
      .when(rotate('key_o', { overlap: 60 }))
      .then(
        keyIssued('key_n', {
          name: 'name of key_o',
          hash: hashOf('key_n'),
          ...grant(['agents:read']),
        }),
        keyRotated('key_o', 'key_n', at(60), 'key_m'),
      );
    const { keys } = replay(account, [opened, manager, old, keyRotated('key_o', 'key_n', at(60))]);
    expect(keys.find(({ key_id }) => key_id === 'key_o')).toMatchObject({ expires_at: at(60) });
  });

  test('without an overlap revokes the old key at once', () => {
    const events = account.decide(rotate('key_o'), replay(account, [opened, manager, old]));
    expect(events.map(({ type }) => type)).toEqual([
      'account.key_issued.v1',
      'account.key_rotated.v1',
      'account.key_revoked.v1',
    ]);
  });

  test('never prolongs the old key, and gives the new one its end unless another is named', () => {
    const mortal = issued('key_o', ['agents:read'], at(30));
    const ends = (command: AccountCommand) =>
      account
        .decide(command, replay(account, [opened, manager, mortal]))
        .map(({ data }) => (data as { expires_at: string | null }).expires_at);
    expect(ends(rotate('key_o', { overlap: 60 }))).toEqual([at(30), at(30)]);
    expect(ends(rotate('key_o', { overlap: 10, expires_at: at(90) }))).toEqual([at(90), at(10)]);
  });

  test('whose answer is lost can be repeated, and leaves the life that the key had', () => {
    const lost = [
      keyIssued('key_l', key('key_l', ['keys:write'])),
      keyRotated('key_m', 'key_l', at(60), 'key_m'),
    ];
    const own = issued('key_m', ['keys:write']);
    for (const again of ['key_m', 'key_l'])
      given(opened, own, ...lost)
        .when(rotate(again, { overlap: 30 }))
        .then(
          keyIssued('key_n', {
            ...key('key_n', ['keys:write']),
            name: `name of ${again}`,
          }),
          keyRotated(again, 'key_n', at(30), 'key_m'),
        );
    // It still issues no other key that outlives it, and replaces no other one.
    given(opened, own, ...lost)
      .when(issue(['keys:write']))
      .thenRejected('key_outlives_manager');
    given(opened, own, ...lost, issued('key_o', ['keys:write']))
      .when(rotate('key_o'))
      .thenRejected('key_outlives_manager');
  });

  test.each([
    ['another key', 'key_a'],
    ['an operator or an earlier release', undefined],
  ])('by %s ends with the overlap, whatever the key rotates', (_who, rotator) => {
    const bounded = issued('key_3', ['keys:write'], at(60));
    const ownRotation = [bounded, keyRotated('key_m', 'key_3', at(60), 'key_m')];
    const rotation = [
      issued('key_2', ['keys:write']),
      keyRotated('key_m', 'key_2', at(60), rotator),
    ];
    // Its own rotation that ends in time, before or after, changes nothing.
    for (const past of [rotation, [...rotation, ...ownRotation], [...ownRotation, ...rotation]])
      for (const replaced of ['key_m', 'key_2'])
        given(opened, issued('key_m', ['keys:write']), ...past)
          .when(rotate(replaced, { overlap: 30 }))
          .thenRejected('key_outlives_manager');
  });

  test('by a successor is no lost answer, and the key before replaces none after it', () => {
    given(
      opened,
      issued('key_m', ['keys:write']),
      issued('key_2', ['keys:write']),
      keyRotated('key_m', 'key_2', at(60), 'key_m'),
      issued('key_3', ['keys:write']),
      keyRotated('key_2', 'key_3', at(60), 'key_2'),
    )
      .when(rotate('key_3'))
      .thenRejected('key_outlives_manager');
  });

  test('of a key that is revoked later leaves what the key was in its events', () => {
    given(opened, manager, old, keyRotated('key_o', 'key_n', at(60)))
      .when(revoke('key_o'))
      .then(keyRevoked('key_o', key('key_o', ['agents:read'], at(60))));
  });

  test('is rejected for a key with more scopes, and for one that is revoked or expired', () => {
    given(opened, manager, issued('key_g', ['agents:write']))
      .when(rotate('key_g'))
      .thenRejected('key_scopes_exceeded');
    given(opened, manager, old, keyRevoked('key_o'))
      .when(rotate('key_o'))
      .thenRejected('key_inactive');
    given(opened, manager, issued('key_o', ['agents:read'], at(0)))
      .when(rotate('key_o'))
      .thenRejected('key_inactive');
    given(opened, manager).when(rotate('key_x')).thenRejected('key_unknown');
  });

  test('of the only key that can issue keys by itself leaves its successor', () => {
    const events = account.decide(rotate('key_m'), replay(account, [opened, manager]));
    const { keys } = replay(account, [opened, manager, ...events]);
    expect(keys.map(({ key_id, revoked }) => [key_id, revoked])).toEqual([
      ['key_m', true],
      ['key_n', false],
    ]);
  });
});

test('an account is opened with its first key at once', () => {
  const first = key('key_n', ['keys:write']);
  given()
    .when({ type: 'open_account', name: 'An account', key: first })
    .then(opened, issued('key_n', ['keys:write']));
});
