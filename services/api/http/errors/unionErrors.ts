import type { ErrorObject } from 'ajv/dist/2020.js';

interface Branch {
  title?: string;
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

/**
 * Where a value matches no branch of a union of titled objects, keeps only the errors of the branch
 * with the fewest, which the client probably meant. On a tie, one error lists the branches.
 */
export function selectUnionErrors(errors: readonly ErrorObject[]): ErrorObject[] {
  const kept = new Set(errors.slice(0, MAX_ERRORS));
  for (const union of kept) {
    const branches = union.keyword === 'anyOf' ? (union.schema as Branch[]) : [];
    if (branches.length === 0 || !branches.every(({ title }) => title !== undefined)) continue;
    const branchErrors = [...groupByBranch([...kept], union).values()];
    const [fewest, next] = branchErrors.toSorted((one, other) => one.length - other.length);
    const chosen = fewest && next && fewest.length < next.length ? fewest : [union];
    for (const error of [...branchErrors.flat(), union])
      if (!chosen.includes(error)) kept.delete(error);
    const titles = branches.map(({ title }) => title).join(', ');
    union.message = `must be one of ${titles}, as the OpenAPI document describes them`;
  }
  return [...kept];
}
