import { describe, expect, test } from '@jest/globals';
import { account, type AccountCommand } from '../../../../shared/accounts/decider.ts';
import fc from 'fast-check';
import type { AccountEvent } from '../../../../shared/accounts/events.ts';
import { isRejection } from '../../../../shared/domain/rejection.ts';
import { replay, specification } from '../../../support/builders/deciderSpecification.ts';
import {
  accountErased,
  accountOpened,
  holdSet,
  keyData,
  keyIssued,
  keyRevoked,
  limitsSet,
  retentionSet,
} from '../../../support/builders/events.ts';

const given = specification(account);
const key = keyData('key_1');
const opened = accountOpened('default');
const issued = keyIssued('key_1');
const revoked = keyRevoked('key_1');

describe('an account', () => {
  test('is opened once', () => {
    given().when({ type: 'open_account', name: 'default' }).then(opened);
    given(opened).when({ type: 'open_account', name: 'again' }).thenRejected('account_exists');
  });

  test('issues keys only after it was opened, and each id once', () => {
    given().when({ type: 'issue_key', key }).thenRejected('account_missing');
    given(opened).when({ type: 'issue_key', key }).then(issued);
    given(opened, issued).when({ type: 'issue_key', key }).thenRejected('key_exists');
    given(opened, issued, revoked).when({ type: 'issue_key', key }).thenRejected('key_exists');
  });

  test('issues a first key only while it never had a key: replicas that begin at once each make one', () => {
    const hash = 'cd'.repeat(32);
    const first = { type: 'issue_key', key: keyData('key_2', { hash }), isFirst: true } as const;
    given(opened).when(first).then(keyIssued('key_2', { hash }));
    given(opened, issued).when(first).thenRejected('key_exists');
    given(opened, issued, revoked).when(first).thenRejected('key_exists');
  });

  test('issues one key once, whatever id it would have: two replicas may begin with the same one', () => {
    const again = keyData('key_2', { hash: key.hash });
    given(opened, issued).when({ type: 'issue_key', key: again }).thenRejected('key_exists');
    const other = keyData('key_2', { hash: 'cd'.repeat(32) });
    given(opened, issued)
      .when({ type: 'issue_key', key: other })
      .then(keyIssued('key_2', { hash: other.hash }));
  });

  test('revokes a key that it issued, and says nothing when that is done already', () => {
    given(opened).when({ type: 'revoke_key', key_id: 'key_1' }).thenRejected('key_unknown');
    given(opened, issued).when({ type: 'revoke_key', key_id: 'key_1' }).then(revoked);
    given(opened, issued, revoked).when({ type: 'revoke_key', key_id: 'key_1' }).then();
  });

  test('sets the limits that are named, keeps the others, and says nothing when it has them already', () => {
    const set = (limits: object) => ({ type: 'set_limits', limits }) as const;
    given()
      .when(set({ runs: 1 }))
      .thenRejected('account_missing');
    given(opened)
      .when(set({ runs: 1 }))
      .then(limitsSet({ runs: 1 }));
    given(opened, limitsSet({ runs: 1 }))
      .when(set({ prompt_bytes: 9 }))
      .then(limitsSet({ runs: 1, prompt_bytes: 9 }));
    given(opened, limitsSet({ runs: 1, prompt_bytes: 9 }))
      .when(set({ runs: null }))
      .then(limitsSet({ prompt_bytes: 9 }));
    given(opened, limitsSet({ runs: 1 }))
      .when(set({ runs: 1 }))
      .then();
    given(opened)
      .when(set({ runs: null }))
      .then();
  });

  test('sets the bounds of its retention that are named, and says nothing when it has them already', () => {
    const set = (retention: object) => ({ type: 'set_retention', retention }) as const;
    given()
      .when(set({ minimum_days: 1 }))
      .thenRejected('account_missing');
    given(opened)
      .when(set({ minimum_days: 183 }))
      .then(retentionSet({ minimum_days: 183 }));
    given(opened, retentionSet({ minimum_days: 183 }))
      .when(set({ maximum_days: 365 }))
      .then(retentionSet({ minimum_days: 183, maximum_days: 365 }));
    given(opened, retentionSet({ minimum_days: 183, maximum_days: 365 }))
      .when(set({ maximum_days: null }))
      .then(retentionSet({ minimum_days: 183 }));
    given(opened, retentionSet({ maximum_days: 9 }))
      .when(set({ maximum_days: 9 }))
      .then();
    given(opened)
      .when(set({ minimum_days: null }))
      .then();
  });

  test('has no minimum above its maximum, whichever of them was there first', () => {
    const set = (retention: object) => ({ type: 'set_retention', retention }) as const;
    given(opened)
      .when(set({ minimum_days: 9, maximum_days: 9 }))
      .then(retentionSet({ minimum_days: 9, maximum_days: 9 }));
    given(opened, retentionSet({ minimum_days: 9 }))
      .when(set({ maximum_days: 8 }))
      .thenRejected('retention_invalid');
    given(opened, retentionSet({ maximum_days: 8 }))
      .when(set({ minimum_days: 9 }))
      .thenRejected('retention_invalid');
  });

  test('whatever is asked for, in whatever order, the minimum never exceeds the maximum', () => {
    const bound = fc.option(fc.integer({ min: 1, max: 5 }), { nil: null });
    const asked = fc.record({ minimum_days: bound, maximum_days: bound }, { requiredKeys: [] });
    fc.assert(
      fc.property(fc.array(asked, { maxLength: 20 }), (all) => {
        let past: AccountEvent[] = [opened];
        for (const retention of all) {
          const state = replay(account, past);
          try {
            past = [...past, ...account.decide({ type: 'set_retention', retention }, state)];
          } catch (error) {
            if (!isRejection(error, 'retention_invalid')) throw error;
          }
          const { minimum_days = 0, maximum_days = Infinity } = replay(account, past).retention;
          expect(minimum_days).toBeLessThanOrEqual(maximum_days);
        }
        const { retention } = replay(account, past);
        expect(account.decide({ type: 'set_retention', retention }, replay(account, past))).toEqual(
          [],
        );
      }),
    );
  });

  test('is held and no longer held, and says nothing when it is so already', () => {
    const set = (hold: { held: boolean; reason?: string }) => ({ type: 'set_hold', hold }) as const;
    const held = holdSet({ held: true, reason: 'Case 12' });
    given()
      .when(set({ held: true }))
      .thenRejected('account_missing');
    given(opened)
      .when(set({ held: true, reason: 'Case 12' }))
      .then(held);
    given(opened, held)
      .when(set({ held: true, reason: 'Case 12' }))
      .then();
    given(opened, held)
      .when(set({ held: true, reason: 'Case 13' }))
      .then(holdSet({ held: true, reason: 'Case 13' }));
    given(opened, held)
      .when(set({ held: false }))
      .then(holdSet({ held: false }));
    given(opened)
      .when(set({ held: false, reason: 'never was' }))
      .then();
  });

  test('is erased once, and for good: nothing is opened, issued, revoked or set in it any more', () => {
    const erase: AccountCommand = { type: 'erase_account', key_ids: ['k'], note: 'asked for' };
    const erased = accountErased({ key_ids: ['k'], note: 'asked for' });
    given().when(erase).thenRejected('account_missing');
    given(opened, issued).when(erase).then(erased);
    given(opened, holdSet({ held: true }))
      .when(erase)
      .thenRejected('account_held');
    given(opened, holdSet({ held: true }), holdSet({ held: false }))
      .when(erase)
      .then(erased);
    given(opened, issued, erased).when(erase).then();
    const past = given(opened, issued, erased);
    past.when({ type: 'open_account', name: 'again' }).thenRejected('account_exists');
    past.when({ type: 'issue_key', key: keyData('key_2') }).thenRejected('account_erased');
    past.when({ type: 'revoke_key', key_id: 'key_1' }).thenRejected('account_erased');
    expect([opened, issued, erased].reduce(account.evolve, account.initialState).keys).toEqual([]);
    past.when({ type: 'set_limits', limits: { runs: 1 } }).thenRejected('account_erased');
  });
});
