import { createContext, Script } from 'node:vm';
import { Ajv, type Options } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { LIMITS } from '../../shared/limits.ts';
import { hasPrototypeMember } from '../../shared/lib/validation/jsonComplexity.ts';
import { problemsOf } from '../../shared/lib/validation/validation.ts';

const sandbox: { work: () => unknown } = { work: () => undefined };
let context: ReturnType<typeof createContext> | undefined;
const script = new Script('work()');

/**
 * Runs `work`, whose input is hostile: a pattern may backtrack and a schema may branch without end.
 * The time limit interrupts loops and regular expressions at any point, so `work` must not leave
 * shared state half changed. Throws the errors of `work`, and an error after the time limit.
 */
function runWithTimeout<Result>(work: () => Result, ms: number): Result {
  context ??= createContext(sandbox);
  sandbox.work = work;
  try {
    return script.runInContext(context, { timeout: ms }) as Result;
  } finally {
    sandbox.work = () => undefined;
  }
}

/** Whether the error is the time limit of `runWithTimeout`. */
const isTimeLimit = (error: unknown): boolean =>
  (error as NodeJS.ErrnoException | undefined)?.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT';

/** The problem of arguments, as the rest of a sentence; undefined where they are valid. */
export type CheckArguments = (args: unknown) => string | undefined;

const { checkMs, schemaBytes, schemaDepth, schemaMs } = LIMITS.mcp;

const OPTIONS: Options = {
  strict: false,
  validateFormats: false,
  validateSchema: false,
  logger: false,
  // Repeated references are not inlined: a small schema could expand without end.
  inlineRefs: false,
};

/** JSON escapes that no event may hold: NUL and lone surrogates. */
const UNSTORABLE = /\\u(0000|d[89a-f])/i;

function depthOf(value: unknown, most: number): number {
  if (typeof value !== 'object' || value === null) return 0;
  if (most === 0) return 1;
  let deepest = 0;
  for (const part of Object.values(value)) deepest = Math.max(deepest, depthOf(part, most - 1));
  return deepest + 1;
}

/** The schema as it is recorded and offered: plain JSON. Throws an Error with the reason. */
export function plainSchema(schema: object): Record<string, unknown> {
  if (depthOf(schema, schemaDepth) > schemaDepth) throw new Error('its schema is nested too deep');
  const json = JSON.stringify(schema);
  if (Buffer.byteLength(json) > schemaBytes)
    throw new Error(`its schema is longer than ${schemaBytes} bytes`);
  if (UNSTORABLE.test(json)) throw new Error('its schema holds what is no text');
  if (hasPrototypeMember(json))
    throw new Error('its schema has a member named __proto__, which can’t be checked');
  return JSON.parse(json) as Record<string, unknown>;
}

function compile({ $schema, ...schema }: Record<string, unknown>) {
  const dialect = typeof $schema === 'string' && /draft-0[3-7]/.test($schema) ? Ajv : Ajv2020;
  // A compiler per schema keeps an `$id` of one server unknown to the schemas of others.
  const validate = new dialect(OPTIONS).compile(schema);
  if ('$async' in validate) throw new Error('its schema is asynchronous');
  return validate;
}

/**
 * Compiles the check of a server's schema, which may be hostile: nothing is loaded for it, and
 * compiling and checking have time limits. Throws an Error that says why the schema is refused.
 */
export function checkFor(schema: Record<string, unknown>): CheckArguments {
  let validate: ReturnType<typeof compile>;
  try {
    validate = runWithTimeout(() => compile(schema), schemaMs);
  } catch (error) {
    throw new Error(
      isTimeLimit(error) ? 'its schema takes too long to be read' : 'its schema can’t be used',
      { cause: error },
    );
  }
  return (args) => {
    if (typeof args !== 'object' || args === null || Array.isArray(args))
      return 'they must be a JSON object';
    try {
      if (runWithTimeout(() => validate(args), checkMs)) return undefined;
    } catch (error) {
      return isTimeLimit(error) ? 'they take too long to be checked' : 'they can’t be checked';
    }
    return problemsOf(validate.errors)
      .map(({ path, message }) => `${path.slice(1) || 'they'} ${message}`)
      .join('; ');
  };
}
