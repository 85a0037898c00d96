import { describe, expect, test } from '@jest/globals';
import { array, assert, bigInt, constantFrom, integer, oneof, property, string } from 'fast-check';
import { calculate } from '../../../../infra/tools/expression.ts';
import { ToolFailure } from '../../../../infra/tools/tool.ts';
import { size } from '../../../support/jest/size.ts';

const numRuns = size({ small: 200, full: 3_000 });

/** What the calculator says, or why not. */
function outcome(expression: string): string {
  try {
    return calculate(expression);
  } catch (error) {
    if (error instanceof ToolFailure) return `refused: ${error.message}`;
    throw error;
  }
}

describe('is exact', () => {
  test.each([
    ['123456789*987654321', '121932631112635269'],
    ['0.1+0.2', '0.3'],
    ['2^200', String(2n ** 200n)],
    ['10^999', `1${'0'.repeat(999)}`],
    ['2^-3', '0.125'],
    ['1000!/998!', '999000'],
    ['sqrt(16)', '4'],
    [`sqrt(${(10n ** 80n + 1n) ** 2n})`, String(10n ** 80n + 1n)],
    ['8^(2/3)', '4'],
    ['cbrt(-8)', '-2'],
    ['log10(1000)', '3'],
    ['log2(1/8)', '-3'],
    ['log(8, 2) + ln(1) + sin(0) + cos(0) + acos(1)', '4'],
    ['floor(pi*10^20)', '314159265358979323846'],
    ['round(2.345, 2) + round(-2.5) + round(sin(pi), 5)', '-0.65'],
    ['mod(-7, 3)', '2'],
    ['gcd(12, 18, 27) + lcm(4, 6)', '15'],
    ['hypot(3, 4) + max(1, sqrt(2), 3) - min(1, sqrt(2))', '7'],
    ['1/3', '1/3, about 0.33333333333333333333'],
    ['-7/3', '-7/3, about -2.3333333333333333333'],
  ])('where the result is: %.40s', (expression, result) => {
    expect(outcome(expression)).toBe(result);
  });

  test.each([
    ['sqrt(2)', '1.4142135623730950488'],
    ['e', '2.7182818284590452354'],
    ['pi', '3.1415926535897932385'],
    ['ln(10)', '2.3025850929940456840'],
    ['sin(1)', '0.84147098480789650665'],
    ['sin(10^22)', '-0.85220084976718880177'],
    ['acos(0.5)', '1.0471975511965977462'],
    ['atan2(-1, -1)', '-2.3561944901923449288'],
    ['exp(10^-30) - 1', '1.0000000000000000000e-30'],
    ['9^9^9', '4.2812477317574704804e+369693099'],
    ['2^10000', '1.9950631168807583849e+3010'],
    ['sqrt(2)^2', '2.0000000000000000000'],
  ])('or says about, and every digit is right: %s', (expression, digits) => {
    expect(outcome(expression)).toBe(`about ${digits}`);
  });

  test('or says what it can not tell', () => {
    expect(outcome('sqrt(2)^2 - 2')).toMatch(/^about 0 \(nearer to 0 than \de-5\d\)$/);
    expect(outcome('(exp(10^-300)-1)*10^300+5')).toMatch(/can't be told to 17 digits/);
    for (const expression of [
      'tan(pi/2)',
      'atan2(sin(pi) - 10^-70, -1)',
      'sqrt(sin(pi))',
      'ln(sin(pi))',
      'sin(pi)^0.5',
      '0^sin(pi)',
      'asin(sin(pi/2))',
      'sign(sin(pi))',
    ])
      expect(outcome(expression)).toMatch(/can not be told from zero/);
  });
});

test.each([
  ['12×34', '408'],
  ['12÷5', '2.4'],
  ['2∗3•4', '24'],
  ['1.0x5 + 0 x 3', '5'],
  ['3·4−5', '7'],
  ['2**10', '1024'],
  ['√16 + √(2+2)', '6'],
  ['1,000 + 1 000 + 1_000 + 1’000', '4000'],
  ['1,000,000.5 * 2', '2000001'],
  ['max(1, 000) + max(100,200) + sqrt(1,600)', '241'],
  ['$5 + $3', '8'],
  ['5 € * 2', '10'],
  ['2+2 = ?', '4'],
  ['=2+2', '4'],
  ['3 x 4 + 3x4', '24'],
  ['2² + (1+2)³ + 2⁻¹', '31.5'],
  ['１＋２', '3'],
  ['1.5e3 + 2E-1', '1500.2'],
  ['5! - -3!', '126'],
  ['-2^2 + 2^3^2 + 2^-1', '508.5'],
  ['2(3+4) + (1+2)(3+4)', '35'],
  ['17 % 5 + 5 mod 3', '4'],
  ['50% + 10', '10.5'],
  ['20% of 50', '10'],
  ['200 * (1 + 10%)', '220'],
  ['100% - 20%', '0.8'],
  ['\\frac{1}{2} + \\sqrt{16} \\times 2 \\cdot 2^{10}', '8192.5'],
  ['\\left(1+2\\right) \\div 3', '1'],
  ['Math.sqrt(16) + Max(1, 2)', '6'],
])('understands %s', (expression, result) => {
  expect(outcome(expression)).toBe(result);
});

test.each([
  ['12,5 + 1', 'decimal point'],
  ['1.000,5', 'decimal point'],
  ['1.000.000', 'decimal point'],
  ['0x10', 'more than one way'],
  ['2 e-3', '2 e-3'],
  ['1.5e -3', '1.5e -3'],
  ['max(1,000)', 'space after a comma'],
  ['log(1,024)', 'space after a comma'],
  ['max(1,234, 5)', 'space after a comma'],
  ['200 + 10%', '200 * 1.1'],
  ['17 % -5', 'mod(17, -5)'],
  ['6/2(1+2)', '(6/2)*(1+2)'],
  ['1/2pi', 'parentheses'],
  ['√2^2', 'sqrt('],
  ['3!!', '!!'],
  ['2 3', 'sign between'],
  ['$5+€3', 'currency'],
  ['2+2=4', 'only at the end'],
  ['sin 30', 'needs parentheses'],
  ['atan2(1)', 'takes 2 arguments'],
  ['sqrt(4, 9)', 'takes 1 argument.'],
  ['round(1, 2, 3)', 'takes 1 or 2 arguments'],
  ['max(1)', 'takes 2 or more arguments'],
])('refuses %s, and says how to write it', (expression, how) => {
  expect(outcome(expression)).toMatch(/^refused: /);
  expect(outcome(expression)).toContain(how);
});

/** Enough work to be refused, or none; the longest of them takes a few dozen milliseconds. */
test.each([
  '9^9^9^9',
  '2^(10^9)',
  'factorial(100000)',
  '(10^1000)!',
  'sin(10^1000)',
  'exp(exp(exp(10)))',
  '1e999999999999',
  '((((((((((1/3)^9)^9)^9)^9)^9)^9)^9)^9)^9)^9',
  '1/7^999+1/3^999+'.repeat(60) + '1',
  'sin(1e99)+'.repeat(90) + '1',
  'atan(2)+'.repeat(120) + '1',
  'pi^999*'.repeat(120) + '1',
  '999!+'.repeat(190) + '1',
  `gcd(${'3^6200,7^3500,'.repeat(70)}1)`,
  '('.repeat(1_000),
  '√'.repeat(1_000),
  `${'-'.repeat(900)}1`,
  `2${'^1'.repeat(400)}`,
  '²'.repeat(1_000),
  '1 '.repeat(500),
])('ends soon: %.30s', (expression) => {
  const begun = performance.now();
  outcome(expression);
  expect(performance.now() - begun).toBeLessThan(5_000);
});

/** An expression and its value as a fraction, written by another hand. */
interface Sample {
  text: string;
  n: bigint;
  d: bigint;
}

const literal = oneof(
  bigInt({ min: 0n, max: 10n ** 30n }).map((n): Sample => ({ text: String(n), n, d: 1n })),
  integer({ min: 0, max: 99_999 }).map((n): Sample => ({
    text: `${Math.floor(n / 100)}.${String(n % 100).padStart(2, '0')}`,
    n: BigInt(n),
    d: 100n,
  })),
);

const samples = array(
  literal.chain((value) => constantFrom('+', '-', '*', '/').map((sign) => ({ value, sign }))),
  { minLength: 1, maxLength: 6 },
).map((terms) =>
  terms.slice(1).reduce<Sample>((a, { value: b, sign }) => {
    const text = `(${a.text} ${sign} ${b.text})`;
    if (sign === '*') return { text, n: a.n * b.n, d: a.d * b.d };
    if (sign === '/') return { text, n: a.n * b.d, d: a.d * b.n };
    const other = sign === '+' ? b.n : -b.n;
    return { text, n: a.n * b.d + other * a.d, d: a.d * b.d };
  }, terms[0]!.value),
);

/** A printed decimal as a fraction, and the place value of its last digit. */
function read(printed: string): { n: bigint; d: bigint } {
  const [, minus, whole, decimals = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:e([-+]\d+))?$/.exec(printed)!;
  const n = BigInt(`${minus}${whole}${decimals}`);
  const shift = Number(exponent) - decimals.length;
  return shift < 0 ? { n, d: 10n ** BigInt(-shift) } : { n: n * 10n ** BigInt(shift), d: 1n };
}

const magnitude = (value: bigint): bigint => (value < 0n ? -value : value);

test('equals a calculation with fractions, exactly, and to the last digit that it prints', () => {
  assert(
    property(samples, ({ text, n, d }) => {
      const said = outcome(text);
      if (d === 0n) return said.includes('divides by zero');
      const [exact, about] = said.split(', about ');
      const [top, bottom = '1'] = exact!.split('/');
      const { n: printed, d: scale } = read(top!);
      const same = printed * d === n * BigInt(bottom) * scale;
      if (about === undefined) return same;
      const digits = read(about);
      const unit = about.includes('e')
        ? read(`1${about.slice(about.indexOf('e'))}`)
        : { n: 1n, d: 1n };
      const decimals = /\.(\d+)/.exec(about)?.[1]?.length ?? 0;
      // |digits - n/d| is at most half of the last digit's place.
      const off = magnitude(digits.n * d - n * digits.d) * 2n * unit.d * 10n ** BigInt(decimals);
      return same && off <= unit.n * magnitude(digits.d * d);
    }),
    { numRuns },
  );
});

test('reads what it prints', () => {
  assert(
    property(samples, ({ text }) => {
      const [printed] = outcome(text).split(', about ');
      return printed!.startsWith('refused') || outcome(printed!).split(', about ')[0] === printed;
    }),
    { numRuns },
  );
  for (const text of ['2^10000', 'sqrt(2)', '10^-3000', '9^9^9'])
    expect(outcome(outcome(text).slice('about '.length))).toMatch(/^(?:about )?[\d.e+-]+$/);
});

test('functions undo each other, as far as the digits tell', () => {
  assert(
    property(integer({ min: 2, max: 10 ** 9 }), integer({ min: 1, max: 10 ** 6 }), (n, d) => {
      const x = `(${n}/${d})`;
      for (const zero of [
        `exp(ln${x}) - ${x}`,
        `sqrt${x}^2 - ${x}`,
        `cbrt${x}^3 - ${x}`,
        `sin${x}^2 + cos${x}^2 - 1`,
        `tan(atan${x}) - ${x}`,
        `sin(asin(1/${n})) - 1/${n}`,
        `2^log2${x} - ${x}`,
      ])
        expect(outcome(zero)).toMatch(/^(?:0|about 0 \(nearer to 0 than \de-\d+\))$/);
    }),
    { numRuns: numRuns / 10 },
  );
});

const pieces = constantFrom(
  ...'1,2.5,+,-,*,/,^,%,!,(,), ,e,pi,sqrt(,gcd(,log(,round(,=,",[,;,.,\0,9e99,x,×,√,²,$,\\frac{,},\\,{,_,1 000,of,mod,１,\uD800'.split(
    ',',
  ),
  ',',
);

test('ends with a result or a refusal for whatever text there is', () => {
  const text = oneof(
    array(pieces, { maxLength: 80 }).map((parts) => parts.join('')),
    string({ unit: 'binary', maxLength: 200 }),
  );
  assert(
    property(text, (expression) => {
      const begun = performance.now();
      expect(outcome(expression)).toMatch(/^(?:refused: |about |-?\d)/);
      return performance.now() - begun < 5_000;
    }),
    { numRuns: numRuns * 3 },
  );
});
