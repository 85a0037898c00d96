import { beforeEach, describe, expect, test } from '@jest/globals';
import { createCircuit, type Circuit, type Outcome } from '../../../../infra/gateway/circuit.ts';
import { LIMITS } from '../../../../shared/limits.ts';

const FAILURES = 4;
const OPEN_MS = 100;

let now: number;
let changes: string[];
let circuit: Circuit;
beforeEach(() => {
  now = 0;
  changes = [];
  const limits = { failures: FAILURES, openMs: OPEN_MS, now: () => now };
  circuit = createCircuit(limits, (state) => changes.push(state));
});

/** False if the call is rejected. */
function call(account: string, outcome: Outcome): boolean {
  const settle = circuit.admit(account);
  settle?.(outcome);
  return settle !== undefined;
}
const callAll = (accounts: string, outcome: Outcome): boolean[] =>
  Array.from(accounts).map((account) => call(account, outcome));
/** Whether a call of each account passes, which is then given up. */
const passes = (accounts: string): boolean[] =>
  Array.from(accounts).map((account) => {
    const settle = circuit.admit(account);
    settle?.('given_up');
    return settle !== undefined;
  });

test('an answer closes the circuit for all accounts once it has opened for all', () => {
  callAll('abc', 'failed');
  call('a', 'failed');
  now += OPEN_MS;
  const settlers = ['a', 'b', 'd'].map((account) => circuit.admit(account)!);
  settlers[0]!('failed');
  settlers[1]!('given_up');
  settlers[2]!('answered');
  expect(callAll('abd', 'answered')).toEqual([true, true, true]);
});

describe('failures of one account', () => {
  test('open the circuit for it alone, whatever its tests come to', () => {
    callAll('aaaa', 'failed');
    expect(callAll('aba', 'answered')).toEqual([false, true, false]);
    for (const outcome of ['failed', 'given_up', 'failed'] as const) {
      now += OPEN_MS;
      expect(call('a', outcome)).toBe(true);
      expect(callAll('aba', 'answered')).toEqual([false, true, false]);
    }
    now += OPEN_MS;
    expect(callAll('aab', 'answered')).toEqual([true, true, true]);
  });

  test('open it for it alone beside a failure of a second account', () => {
    callAll('aaaab', 'failed');
    expect(passes('bc')).toEqual([true, true]);
  });

  test('do not show as an open circuit while others are answered', () => {
    callAll('aaba', 'failed');
    call('c', 'answered');
    callAll('aa', 'failed');
    expect(passes('a')).toEqual([false]);
    expect([circuit.isOpen(), changes]).toEqual([false, []]);
  });

  test('show as one while no account is answered', () => {
    callAll('aaaa', 'failed');
    expect([circuit.isOpen(), changes]).toEqual([true, ['open']]);
    call('b', 'answered');
    expect([circuit.isOpen(), changes]).toEqual([false, ['open', 'closed']]);
  });

  test('of its last calls are not counted longer when it is answered', () => {
    callAll('aaa', 'failed');
    call('a', 'answered');
    expect([...callAll('aaa', 'failed'), ...passes('a')]).toEqual([true, true, true, true]);
  });

  test('that began before the circuit opened do not keep it open', () => {
    const late = Array.from({ length: FAILURES + 1 }, () => circuit.admit('a')!);
    for (const settle of late.slice(1)) settle('failed');
    now += OPEN_MS - 1;
    late[0]!('failed');
    expect(circuit.testableInMs('a')).toBe(1);
  });
});

test('each account tests its own circuit, by one call at a time', () => {
  const earlier = circuit.admit('a')!;
  for (const account of ['aaaa', 'bbbb', 'cccc', 'dddd']) {
    callAll(account, 'failed');
    call('e', 'answered');
  }
  now += OPEN_MS;
  const tests = Array.from('abcd').map((account) => circuit.admit(account) !== undefined);
  expect(tests).toEqual([true, true, true, true]);
  earlier('failed');
  now += OPEN_MS;
  expect(circuit.admit('a')).toBeUndefined();
});

describe('failures of three accounts', () => {
  beforeEach(() => void callAll('abca', 'failed'));

  test('open the circuit for all, whose calls are rejected at once', () => {
    expect(passes('abcd')).toEqual([false, false, false, false]);
    expect(circuit.testableInMs('d')).toBe(OPEN_MS);
    expect([circuit.isOpen(), changes]).toEqual([true, ['open']]);
  });

  test('let three accounts test it at once, by one call each', () => {
    now += OPEN_MS;
    const tests = Array.from('aabcd').map((account) => circuit.admit(account));
    expect(tests.map((settle) => settle !== undefined)).toEqual([true, false, true, true, false]);
    expect(circuit.isOpen()).toBe(true);
    tests[0]!('failed');
    // The account that failed has to wait; the place is another's.
    expect(circuit.admit('a')).toBeUndefined();
    expect(circuit.admit('d')).toBeDefined();
  });

  test('open it again for all when the tests of three fail, not when one gives up or fails', () => {
    now += OPEN_MS;
    expect(call('a', 'failed')).toBe(true);
    expect(call('b', 'given_up')).toBe(true);
    expect(callAll('cd', 'failed')).toEqual([true, true]);
    expect(passes('e')).toEqual([false]);
    expect(circuit.testableInMs('e')).toBe(OPEN_MS);
    expect(changes).toEqual(['open']);
  });

  test('are over for all with one answer, also to an earlier call', () => {
    now += OPEN_MS;
    expect(call('d', 'answered')).toBe(true);
    const calls = Array.from('dddd').map((account) => circuit.admit(account) !== undefined);
    expect(calls).toEqual([true, true, true, true]);
    expect(callAll('abce', 'answered')).toEqual([true, true, true, true]);
    expect([circuit.isOpen(), changes]).toEqual([false, ['open', 'closed']]);
  });
});

test('failures of calls from before the circuit opened for all do not keep it open', () => {
  const late = Array.from('abcd').map((account) => circuit.admit(account)!);
  callAll('abca', 'failed');
  now += OPEN_MS;
  for (const settle of late) settle('failed');
  expect(circuit.testableInMs('e')).toBe(0);
});

test('failures of many accounts open nothing while calls are answered in between', () => {
  for (let round = 0; round < FAILURES; round += 1) {
    callAll('abc', 'failed');
    call('d', 'answered');
  }
  callAll('abd', 'answered');
  callAll('cccc', 'failed');
  expect(passes('cde')).toEqual([false, true, true]);
});

test('the account that called least recently is forgotten beyond the limit', () => {
  callAll('aaaa', 'failed');
  const fail = (count: number): void => {
    for (let index = 0; index < count; index += 1) {
      call(`other-${index}`, 'failed');
      call('answered', 'answered');
    }
  };
  fail(LIMITS.model.failingAccounts - 1);
  expect(passes('a')).toEqual([false]);
  fail(LIMITS.model.failingAccounts);
  expect(passes('a')).toEqual([true]);
});
