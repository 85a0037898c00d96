import { Type } from 'typebox';
import { ALLOWED, requireArithmetic } from './expression.ts';
import { ToolFailure, type Tool } from './tool.ts';

const LONGEST_EXPRESSION = 1_000;
/** Digits that a double holds without its rounding showing: 0.1 + 0.2 is 0.3. */
const SIGNIFICANT_DIGITS = 14;

const Arguments = Type.Object(
  {
    expression: Type.String({
      minLength: 1,
      maxLength: LONGEST_EXPRESSION,
      description: 'An arithmetic expression, such as (12.5 + 3) * 4 ^ 2',
    }),
  },
  { additionalProperties: false },
);

/**
 * The expression's value. Errors: ToolFailure when it is not an arithmetic expression, or has no
 * finite value.
 */
async function calculate(expression: string): Promise<number> {
  const { parse } = await import('mathjs/number');
  let value: unknown;
  try {
    const tree = parse(expression);
    requireArithmetic(tree);
    value = tree.evaluate();
  } catch (error) {
    if (error instanceof ToolFailure) throw error;
    const said = error instanceof Error ? error.message : String(error);
    const reason = error instanceof RangeError ? 'It is nested too deep' : said;
    throw new ToolFailure(`The expression can't be calculated: ${reason}. ${ALLOWED}`);
  }
  if (typeof value !== 'number' || !Number.isFinite(value)) {
    throw new ToolFailure(
      'The expression has no finite value: it divides by zero, leaves the real numbers, or is too large.',
    );
  }
  return value;
}

/**
 * Arithmetic through the mathjs parser, on doubles. Nothing of the expression is ever run as code.
 */
export const calculator: Tool<typeof Arguments> = {
  name: 'calculator',
  description: 'Calculates the value of an arithmetic expression.',
  parameters: Arguments,
  run: async ({ expression }) =>
    String(Number((await calculate(expression)).toPrecision(SIGNIFICANT_DIGITS)) + 0),
};
