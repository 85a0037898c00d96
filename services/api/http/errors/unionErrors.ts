import type { ErrorObject } from 'ajv/dist/2020.js';

interface Branch {
  title?: string;
}

/** Errors that are looked at: a body may have many. */
const MAX_ERRORS = 200;

const isWithin = (path: string, outer: string): boolean =>
  path === outer || path.startsWith(`${outer}/`);

/** By branch of a union, what is wrong with it. */
function groupByBranch(
  errors: readonly ErrorObject[],
  union: ErrorObject,
): Map<string, ErrorObject[]> {
  const found = new Map<string, ErrorObject[]>();
  for (const error of errors) {
    if (!isWithin(error.instancePath, union.instancePath)) continue;
    if (!error.schemaPath.startsWith(`${union.schemaPath}/`)) continue;
    const [branch] = error.schemaPath.slice(union.schemaPath.length + 1).split('/', 1);
    found.set(branch!, [...(found.get(branch!) ?? []), error]);
  }
  return found;
}

/**
 * The errors of a validator with those of one branch where a value fits none of a union of titled
 * objects: the branch with the fewest, which its client meant. Where several have so many it is said
 * which there are.
 */
export function selectUnionErrors(errors: readonly ErrorObject[]): ErrorObject[] {
  const left = new Set(errors.slice(0, MAX_ERRORS));
  for (const union of left) {
    const branches = union.keyword === 'anyOf' ? (union.schema as Branch[]) : [];
    if (branches.length === 0 || !branches.every(({ title }) => title !== undefined)) continue;
    const found = [...groupByBranch([...left], union).values()];
    const [fewest, next] = found.toSorted((one, other) => one.length - other.length);
    const meant = fewest && next && fewest.length < next.length ? fewest : [union];
    for (const error of [...found.flat(), union]) if (!meant.includes(error)) left.delete(error);
    const titles = branches.map(({ title }) => title).join(', ');
    union.message = `must be one of ${titles}, as the OpenAPI document describes them`;
  }
  return [...left];
}
