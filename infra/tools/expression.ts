import type {
  ConstantNode,
  FunctionNode,
  MathNode,
  OperatorNode,
  ParenthesisNode,
  SymbolNode,
} from 'mathjs';
import { ToolFailure } from './tool.ts';

const FUNCTIONS = [
  'abs',
  'ceil',
  'floor',
  'round',
  'sign',
  'sqrt',
  'cbrt',
  'exp',
  'log',
  'log2',
  'log10',
  'sin',
  'cos',
  'tan',
  'asin',
  'acos',
  'atan',
  'atan2',
  'min',
  'max',
  'pow',
  'mod',
  'gcd',
  'lcm',
  'hypot',
] as const;
const CONSTANTS = ['pi', 'e', 'tau', 'phi'] as const;
export const ALLOWED = `Allowed are numbers, + - * / ^ % ! and parentheses, the functions ${FUNCTIONS.join(', ')} and the constants ${CONSTANTS.join(', ')}.`;

const OPERATIONS = new Set([
  'add',
  'subtract',
  'multiply',
  'divide',
  'pow',
  'mod',
  'unaryMinus',
  'unaryPlus',
  'factorial',
]);
const functions = new Set<string>(FUNCTIONS);
const constants = new Set<string>(CONSTANTS);
/**
 * Far above what a person writes, far below what the recursion of the parser and the evaluator
 * bears.
 */
const DEEPEST = 100;

const refuse = (what: string): never => {
  throw new ToolFailure(`${what} can't be used in an expression. ${ALLOWED}`);
};

function childrenOf(node: MathNode): MathNode[] {
  switch (node.type) {
    case 'ConstantNode':
      return typeof (node as ConstantNode).value === 'number'
        ? []
        : refuse('A value that is not a number');
    case 'SymbolNode':
      return constants.has((node as SymbolNode).name)
        ? []
        : refuse(`"${(node as SymbolNode).name}"`);
    case 'ParenthesisNode':
      return [(node as ParenthesisNode).content];
    case 'OperatorNode':
      return OPERATIONS.has((node as OperatorNode).fn)
        ? (node as OperatorNode).args
        : refuse(`The operation "${String((node as OperatorNode).fn)}"`);
    case 'FunctionNode': {
      const { fn, args } = node as FunctionNode;
      return fn.type === 'SymbolNode' && functions.has(fn.name) ? args : refuse('That function');
    }
    default:
      return refuse('What is not arithmetic');
  }
}

/**
 * Lets pass only plain arithmetic: no names but the listed ones, no assignment, no definition, no
 * matrix, nothing nested deeper than 100. Errors: ToolFailure, which says what is allowed.
 */
export function requireArithmetic(root: MathNode): void {
  for (
    let level: MathNode[] = [root], depth = 1;
    level.length > 0;
    level = level.flatMap(childrenOf), depth += 1
  ) {
    if (depth > DEEPEST)
      throw new ToolFailure(`The expression is nested deeper than ${DEEPEST} levels.`);
  }
}
