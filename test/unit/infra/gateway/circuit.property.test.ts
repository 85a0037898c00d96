import { expect, test } from '@jest/globals';
import { assert, asyncProperty, array, constantFrom, oneof, integer } from 'fast-check';
import { createCircuit, type Outcome } from '../../../../infra/gateway/circuit.ts';
import { size } from '../../../support/jest/size.ts';

const FAILURES = 3;
const OPEN_MS = 100;

type Because = 'failed' | 'answered' | 'given_up' | 'fine';
/** A call that comes to something, or so many milliseconds. */
type Step = Because | number;

const step = oneof(
  constantFrom<Because>('failed', 'failed', 'failed', 'answered', 'given_up', 'fine'),
  integer({ min: 1, max: 2 * OPEN_MS }),
);

const outcomeOf = (because: Because): Outcome<string> =>
  because === 'fine' ? { result: 'fine' } : { error: because, because };

test('a circuit lets through and refuses what a plain count of its calls says', async () => {
  await assert(
    asyncProperty(array(step, { maxLength: 60 }), async (steps: Step[]) => {
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
        expect(circuit.opensIn()).toBe(isOpen ? openUntil! - now : undefined);
        const outcome = await circuit.run(async () => outcomeOf(each));
        expect(outcome).toEqual(isOpen ? undefined : outcomeOf(each));
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

test('while one call decides, nothing else is let through, and nobody waits for it', async () => {
  let now = 0;
  const circuit = createCircuit({ failures: 1, openMs: OPEN_MS, now: () => now }, () => undefined);
  await circuit.run(async () => outcomeOf('failed'));
  now += OPEN_MS;
  const deciding = Promise.withResolvers<Outcome<string>>();
  const probe = circuit.run(() => deciding.promise);
  expect(await circuit.run(async () => outcomeOf('fine'))).toBeUndefined();
  expect(circuit.opensIn()).toBe(0);
  deciding.resolve(outcomeOf('fine'));
  expect(await probe).toEqual({ result: 'fine' });
  expect(await circuit.run(async () => outcomeOf('fine'))).toEqual({ result: 'fine' });
});

test('an error that is no outcome goes on as it is', async () => {
  const circuit = createCircuit({ failures: 1, openMs: OPEN_MS, now: () => 0 }, () => undefined);
  const defect = new Error('a defect');
  await expect(circuit.run(() => Promise.reject(defect))).rejects.toBe(defect);
});
