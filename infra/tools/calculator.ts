import { Type } from '../../shared/domain/jsonSchema.ts';
import { LIMITS } from '../../shared/limits.ts';
import type { Tool } from './tool.ts';

const Arguments = Type.Object(
  {
    expression: Type.String({
      minLength: 1,
      maxLength: LIMITS.arithmetic.expressionChars,
      description:
        'An arithmetic expression, such as (12.5 + 3) * 4 ^ 2. log(x) is the natural logarithm, as is ln(x); others are log10(x), log2(x) and log(x, base). Angles are in radians. 17 % 5 is the remainder, and 20% of 50 is 10. Decimals have a point; 1,000 is one thousand, but in max(1, 2) a comma separates.',
    }),
  },
  { additionalProperties: false },
);

/**
 * Calculates with fractions, and with 60 digits where fractions are not possible. Nothing is
 * executed as code.
 */
export const calculator: Tool<typeof Arguments> = {
  name: 'calculator',
  description:
    'Calculates the value of an arithmetic expression. The result is exact, with all its digits, unless it says "about": then it is rounded, to at least 17 significant digits. What has no finite decimals is answered as a fraction and about its decimals: 1/3, about 0.33333333333333333333.',
  parameters: Arguments,
  async run({ expression }) {
    const { calculate } = await import('./expression.ts');
    return calculate(expression);
  },
};
