import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { LRUCache } from 'lru-cache';
import { RUN_LIMITS } from '../../shared/runs/limits.ts';
import { uncheckableReason } from './uncheckable.ts';

/** Asks whether a schema is valid or, with a text, whether the text fits the schema. */
export interface SchemaQuestion {
  schema: string;
  text?: string;
  /** Whether they are those of a tool (checkWorker.ts). */
  isTool?: boolean;
}

const compiled = new LRUCache<string, ValidateFunction>({
  maxSize: RUN_LIMITS.responseFormat.cacheChars,
  sizeCalculation: (_validate, schema) => schema.length,
});
let forSchemas: Ajv2020 | undefined;

/**
 * Compiles each schema with a new compiler, so that no schema finds the definitions of another.
 * Formats are not checked. References are not inlined: a few could expand without end.
 */
function compile(schema: string): ValidateFunction {
  const value = JSON.parse(schema) as Record<string, unknown>;
  forSchemas ??= new Ajv2020({ strict: false, validateFormats: false, logger: false });
  const { $schema: _draft, ...rest } = value;
  if (forSchemas.validateSchema(rest) !== true) throw new Error('It is not a valid schema.');
  const ajv = new Ajv2020({
    strict: false,
    validateFormats: false,
    validateSchema: false,
    meta: false,
    inlineRefs: false,
    logger: false,
    // Members such as `constructor` count only where the answer has them.
    ownProperties: true,
  });
  return ajv.compile(rest);
}

function validatorOf(schema: string): ValidateFunction {
  const validate = compiled.get(schema) ?? compile(schema);
  compiled.set(schema, validate);
  return validate;
}

/** The problem of the schema or of the text, as SchemaChecker reports it. */
export function findSchemaProblem({ schema, text }: SchemaQuestion): string | undefined {
  let validate: ValidateFunction;
  try {
    const reason = compiled.has(schema) ? undefined : uncheckableReason(schema);
    if (reason !== undefined) return reason;
    validate = validatorOf(schema);
  } catch {
    return 'is not a valid JSON Schema (2020-12), or refers to what it does not hold';
  }
  if (text === undefined) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return 'is not JSON';
  }
  try {
    if (validate(value)) return undefined;
  } catch {
    return 'is nested too deeply to be checked';
  }
  return `does not fit the schema (${validate.errors?.[0]?.keyword ?? 'false schema'})`;
}
