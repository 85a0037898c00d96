import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { computeCost, sumCosts } from '../../../../shared/usage/cost.ts';

const priced = (input_per_million: string, output_per_million: string) => ({
  price: { input_per_million, output_per_million, currency: 'EUR' },
});

test('tokens cost what their price says, to the last digit', () => {
  expect(computeCost(priced('2.50', '10'), { prompt: 1_000_000, completion: 100 })).toEqual({
    amount: '2.501',
    currency: 'EUR',
  });
  expect(computeCost(priced('0.1', '0.2'), { prompt: 1, completion: 1 })?.amount).toBe('0.0000003');
  expect(computeCost(priced('0.000000001', '0'), { prompt: 1, completion: 9 })?.amount).toBe(
    '0.000000000000001',
  );
  expect(
    computeCost(priced('999999999.999999999', '0'), {
      prompt: 9_007_199_254_740_991,
      completion: 0,
    })?.amount,
  ).toBe('9007199254740990990.992800745259009');
  expect(computeCost(priced('0', '0'), { prompt: 5, completion: 5 })?.amount).toBe('0');
});

test('where there is no price there is no cost, not one of nothing', () => {
  expect(computeCost(undefined, { prompt: 1, completion: 1 })).toBeUndefined();
  expect(computeCost({}, { prompt: 1, completion: 1 })).toBeUndefined();
  expect(sumCosts([])).toBeUndefined();
});

test('the costs of parts come to the cost of the whole', () => {
  const tokens = fc.record({ prompt: fc.nat(), completion: fc.nat() });
  fc.assert(
    fc.property(fc.array(tokens, { minLength: 1 }), fc.nat(), fc.nat(), (parts, dear, cheap) => {
      const model = priced(`${dear % 1000}.${cheap}`.slice(0, 10), '0.3');
      const whole = parts.reduce(
        (sum, part) => ({
          prompt: sum.prompt + part.prompt,
          completion: sum.completion + part.completion,
        }),
        { prompt: 0, completion: 0 },
      );
      expect(sumCosts(parts.map((part) => computeCost(model, part)!))).toEqual(
        computeCost(model, whole),
      );
    }),
  );
});
