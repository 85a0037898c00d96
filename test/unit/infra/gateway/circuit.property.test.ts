import { expect, test } from '@jest/globals';
import {
  assert,
  array,
  constantFrom,
  integer,
  oneof,
  property,
  record,
  type Arbitrary,
} from 'fast-check';
import { createCircuit, type Outcome } from '../../../../infra/gateway/circuit.ts';
import { size } from '../../../support/jest/size.ts';

const FAILURES = 3;
const OPEN_MS = 100;

/** A call that comes to something, or so many milliseconds. */
type Step = Outcome | number;

const outcome = constantFrom<Outcome>('failed', 'failed', 'failed', 'answered', 'given_up');
const step: Arbitrary<Step> = oneof(outcome, integer({ min: 1, max: 2 * OPEN_MS }));

test('a circuit lets through and refuses what a plain count of its calls says', () => {
  assert(
    property(array(step, { maxLength: 60 }), (steps: Step[]) => {
      let now = 0;
      const changes: string[] = [];
      const circuit = createCircuit(
        { failures: FAILURES, openMs: OPEN_MS, now: () => now },
        (state) => changes.push(state),
      );
      let inARow = 0;
      let openUntil: number | undefined;
      const expected: string[] = [];
      for (const each of steps) {
        if (typeof each === 'number') {
          now += each;
          continue;
        }
        const isOpen = openUntil !== undefined && now < openUntil;
        expect(circuit.isOpen()).toBe(isOpen);
        expect(circuit.testableInMs('a')).toBe(isOpen ? openUntil! - now : 0);
        const settle = circuit.admit('a');
        expect(settle === undefined).toBe(isOpen);
        settle?.(each);
        if (isOpen) continue;
        const decides = openUntil !== undefined;
        if (each === 'failed' || (each === 'given_up' && decides)) {
          inARow += 1;
          if (!decides && inARow < FAILURES) continue;
          if (!decides) expected.push('open');
          openUntil = now + OPEN_MS;
        } else if (each !== 'given_up') {
          inARow = 0;
          if (decides) expected.push('closed');
          openUntil = undefined;
        }
      }
      expect(changes).toEqual(expected);
    }),
    { numRuns: size({ small: 300, full: 20_000 }) },
  );
});

/** A call of one of two accounts; of the first one, a call may stay in flight for some steps. */
const callOfTwo = record({
  account: constantFrom('attacker', 'other'),
  outcome,
  waitMs: integer({ min: 0, max: OPEN_MS }),
  stepsInFlight: integer({ min: 0, max: 5 }),
});

test('nothing that one account does changes which calls of another pass', () => {
  assert(
    property(array(callOfTwo, { maxLength: 80 }), (calls) => {
      const admitted = (withAttacker: boolean): boolean[] => {
        let now = 0;
        const limits = { failures: FAILURES, openMs: OPEN_MS, now: () => now };
        const circuit = createCircuit(limits, () => undefined);
        const inFlight: { until: number; settle: () => void }[] = [];
        return calls.flatMap((call, index) => {
          now += call.waitMs;
          for (const { until, settle } of inFlight) if (until === index) settle();
          if (call.account === 'attacker' && !withAttacker) return [];
          const settle = circuit.admit(call.account);
          if (call.account === 'attacker' && call.stepsInFlight > 0) {
            if (settle)
              inFlight.push({
                until: index + call.stepsInFlight,
                settle: () => settle(call.outcome),
              });
            return [];
          }
          settle?.(call.outcome);
          return call.account === 'other' ? [settle !== undefined] : [];
        });
      };
      expect(admitted(true)).toEqual(admitted(false));
    }),
    { numRuns: size({ small: 300, full: 20_000 }) },
  );
});
