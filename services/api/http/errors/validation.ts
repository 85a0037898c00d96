import type { TObject, TSchema } from 'typebox';
import { TurnlogError, type ErrorDetail } from '../../../../shared/lib/errors/turnlogError.ts';
import { LIMITS } from '../../../../shared/limits.ts';
import {
  convertText,
  lazyValidator,
  MAX_FIELD_NAME_CHARS,
  problemsOf,
  type Problem,
  type ProblemMessages,
} from '../../../../shared/lib/validation/validation.ts';
import type { ErrorObject } from 'ajv/dist/2020.js';

interface Branch {
  title?: string;
  type?: string;
}

/** The most errors to examine: a body may have many. */
const MAX_ERRORS = 200;

const isWithin = (path: string, outer: string): boolean =>
  path === outer || path.startsWith(`${outer}/`);

/** The errors of each branch of a union. */
function groupByBranch(
  errors: readonly ErrorObject[],
  union: ErrorObject,
): Map<string, ErrorObject[]> {
  const byBranch = new Map<string, ErrorObject[]>();
  for (const error of errors) {
    if (!isWithin(error.instancePath, union.instancePath)) continue;
    if (!error.schemaPath.startsWith(`${union.schemaPath}/`)) continue;
    const [branch] = error.schemaPath.slice(union.schemaPath.length + 1).split('/', 1);
    byBranch.set(branch!, [...(byBranch.get(branch!) ?? []), error]);
  }
  return byBranch;
}

/** The errors of a union that only say that the value could also be null, and those of the union. */
const nullErrors = (errors: readonly ErrorObject[], union: ErrorObject): ErrorObject[] =>
  errors.filter(
    ({ instancePath, keyword, params }) =>
      instancePath === union.instancePath &&
      (keyword === 'anyOf' || (keyword === 'type' && params['type'] === 'null')),
  );

const isOfConstant = ({ keyword }: ErrorObject): boolean =>
  keyword === 'const' || keyword === 'enum';

/** If constants of all branches exclude the value of one member: an error with all of them. */
function errorOfConstants(branches: readonly ErrorObject[][]): ErrorObject | undefined {
  const errors = branches.map((branch) => branch.find(isOfConstant));
  const [first] = errors;
  if (!first || errors.some((error) => error?.instancePath !== first.instancePath))
    return undefined;
  const allowedValues = errors.flatMap((error) => Object.values(error!.params).flat() as unknown[]);
  return Object.assign(first, { keyword: 'enum', params: { allowedValues } });
}

/**
 * The errors of the branch that the client probably meant: of those whose constants match, or else of
 * all, the one with the fewest errors, or any where the value is no object. Undefined on a tie.
 */
function errorsOfMeantBranch(
  branches: readonly ErrorObject[][],
  { instancePath }: ErrorObject,
): ErrorObject[] | undefined {
  const excluded = errorOfConstants(branches);
  if (excluded) return [excluded];
  const chosen = branches.filter((errors) => !errors.some(isOfConstant));
  const [fewest, next] = (chosen.length > 0 ? chosen : branches).toSorted(
    (one, other) => one.length - other.length,
  );
  const isNoObject = ({ keyword, instancePath: path }: ErrorObject): boolean =>
    keyword === 'type' && path === instancePath;
  return !next || fewest!.length < next.length || fewest!.some(isNoObject) ? fewest : undefined;
}

/**
 * If a value does not match a union with null, keeps only the errors of the other branches: `must be
 * null` would sound as if nothing else were possible. If it matches no branch of a union of titled
 * objects, keeps only the errors of the branch that was probably meant. On a tie, one error lists the
 * branches.
 */
function selectUnionErrors(errors: readonly ErrorObject[]): ErrorObject[] {
  const selected = new Set(errors.slice(0, MAX_ERRORS));
  for (const union of selected) {
    const branches = union.keyword === 'anyOf' ? (union.schema as Branch[]) : [];
    if (branches.some(({ type }) => type === 'null'))
      for (const error of nullErrors([...selected], union)) selected.delete(error);
    if (branches.length === 0 || !branches.every(({ title }) => title !== undefined)) continue;
    const branchErrors = [...groupByBranch([...selected], union).values()];
    const chosen = errorsOfMeantBranch(branchErrors, union) ?? [union];
    for (const error of [...branchErrors.flat(), union])
      if (!chosen.includes(error)) selected.delete(error);
    const titles = branches.map(({ title }) => title).join(', ');
    union.message = `must be one of ${titles}, as the OpenAPI document describes them`;
  }
  return [...selected];
}

type InputPart = 'body' | 'query';

const withoutNulls = (body: object): object =>
  Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null));

/**
 * Creates a check that returns a valid body and throws `invalid_request` with the problems by field.
 * The body is returned unchanged, but without members that are null if the schema has
 * `x-null-is-absent`. It compiles at the first use.
 */
export function bodyValidator(schema: TSchema): (input: unknown) => unknown {
  const compiled = lazyValidator(schema);
  const words = messagesFor('body');
  const isNullAbsent = 'x-null-is-absent' in schema;
  return (input) => {
    const validate = compiled();
    if (validate(input)) return isNullAbsent ? withoutNulls(input as object) : input;
    throw invalidRequestError('body', describeProblems(validate.errors, words));
  };
}

/** The same for query parameters, which are converted from text to their types, with defaults. */
export function queryValidator(
  schema: TObject,
): (query: Readonly<Record<string, unknown>>) => Record<string, unknown> {
  const compiled = lazyValidator(schema, 'with_defaults');
  const words = messagesFor('query');
  return (query) => {
    const repeated = Object.keys(query).filter(
      (name) => Array.isArray(query[name]) && !isRepeatable(schema, name),
    );
    if (repeated.length > 0)
      throw invalidRequestError(
        'query',
        repeated
          .slice(0, LIMITS.http.details)
          .map((name) => ({ path: `/${name}`, message: 'must be given once' })),
      );
    const input = convertText(schema, query);
    const validate = compiled();
    if (validate(input)) return input;
    throw invalidRequestError('query', describeProblems(validate.errors, words));
  };
}

const isRepeatable = ({ properties }: TObject, name: string): boolean =>
  Object.hasOwn(properties, name) && (properties[name] as { type?: string }).type === 'array';

const describeProblems = (
  errors: Parameters<typeof problemsOf>[0],
  words: ProblemMessages,
): Problem[] => problemsOf(selectUnionErrors(errors ?? []).slice(0, LIMITS.http.details), words);

/** The error for an input with these problems. */
export function invalidRequestError(part: InputPart, problems: readonly Problem[]): TurnlogError {
  const details: Record<string, ErrorDetail> = Object.create(null) as Record<string, ErrorDetail>;
  for (const { path, message } of problems) {
    const field = path.slice(1, 1 + MAX_FIELD_NAME_CHARS) || part;
    details[field] ??= {
      message: `${JSON.stringify(field)} ${message}.`,
      path: part === 'body' ? path : `query/${field}`,
    };
  }
  const sentences = Object.values(details)
    .slice(0, 3)
    .map(({ message }) => message);
  return new TurnlogError(
    'invalid_request',
    `The ${part === 'body' ? 'request body' : 'query'} is not valid: ${sentences.join(' ')}`,
    { details },
  );
}

/** `minLength` is always 1 in the API. */
const messagesFor = (part: InputPart): ProblemMessages => ({
  required: () => 'is required',
  additionalProperties: (_, schema) =>
    knownFields(schema) === ''
      ? 'must be removed: this operation has no fields'
      : `is not a known field; known are ${knownFields(schema)}`,
  enum: ({ allowedValues }) => `must be one of ${(allowedValues as string[]).join(', ')}`,
  minLength: () => 'must not be empty',
  type: ({ type }) =>
    `must be ${(part === 'query' && TEXT_OF[type as string]) || [type].flat().join(' or ')}`,
});

/** How query parameters write values that are not text. */
const TEXT_OF: Readonly<Record<string, string>> = {
  integer: 'an integer in decimal digits, such as 100',
  boolean: 'true or false',
};

const knownFields = (schema: unknown): string =>
  Object.keys((schema as { properties?: object }).properties ?? {}).join(', ');
