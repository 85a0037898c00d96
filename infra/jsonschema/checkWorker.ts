import { parentPort } from 'node:worker_threads';
import { Ajv, type Options, type ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { LRUCache } from 'lru-cache';
import { measureProcessorTime } from '../../shared/lib/time/processorTime.ts';
import { problemsOf } from '../../shared/lib/validation/validation.ts';
import { RUN_LIMITS } from '../../shared/runs/limits.ts';
import { findSchemaProblem, type SchemaQuestion } from './check.ts';
import { uncheckableReason } from './uncheckable.ts';

const OPTIONS: Options = {
  strict: false,
  validateFormats: false,
  validateSchema: false,
  meta: false,
  logger: false,
  // Repeated references are not inlined: a small schema could expand without end.
  inlineRefs: false,
  // Members such as `constructor` count only where the arguments have them.
  ownProperties: true,
};

const compiled = new LRUCache<string, ValidateFunction>({
  maxSize: RUN_LIMITS.responseFormat.cacheChars,
  sizeCalculation: (_validate, schema) => schema.length,
});

/** A reason that quotes nothing of the schema. */
class UnusableSchema extends Error {}

/** Compiles each schema with a new compiler, so that no schema finds the definitions of another. */
function compile(schema: string): ValidateFunction {
  const reason = uncheckableReason(schema);
  if (reason !== undefined) throw new UnusableSchema(reason);
  const { $schema, ...rest } = JSON.parse(schema) as Record<string, unknown>;
  const dialect = typeof $schema === 'string' && /draft-0[3-7]/.test($schema) ? Ajv : Ajv2020;
  const validate = new dialect(OPTIONS).compile(rest);
  if ('$async' in validate) throw new UnusableSchema('is asynchronous');
  return validate;
}

/** The problems of the schema of a tool or of its arguments, as ToolSchemaChecker reports them. */
function checkArguments({ schema, text }: SchemaQuestion): string | undefined {
  let validate: ValidateFunction;
  try {
    validate = compiled.get(schema) ?? compile(schema);
  } catch (error) {
    return error instanceof UnusableSchema ? error.message : 'can’t be used';
  }
  // A list may have many tools; only those that are called are worth their memory.
  if (text === undefined) return undefined;
  compiled.set(schema, validate);
  try {
    if (validate(JSON.parse(text))) return undefined;
  } catch {
    return 'they can’t be checked';
  }
  return problemsOf(validate.errors)
    .map(({ path, message }) => `${path.slice(1) || 'they'} ${message}`)
    .join('; ')
    .slice(0, RUN_LIMITS.mcp.problemChars);
}

// Compile the meta-schema now, so that it doesn't count for the first request.
findSchemaProblem({ schema: '{}' });

/** Answers each question, in order. */
parentPort!.on('message', (question: SchemaQuestion) =>
  parentPort!.postMessage(
    measureProcessorTime(() =>
      question.isTool ? checkArguments(question) : findSchemaProblem(question),
    ),
  ),
);
parentPort!.postMessage('ready');
