import { canonicalJson } from '../../eventlog/canonicalJson.ts';

/**
 * The first column in which two rows of a table differ; undefined when they are equal. `except` names
 * columns that are not compared.
 */
export function differingColumn(
  expected: object,
  found: object,
  except: readonly string[] = [],
): string | undefined {
  const [left, right] = [expected, found] as Record<string, unknown>[];
  return Object.keys(expected).find((column) => {
    if (except.includes(column)) return false;
    const [one, other] = [left![column], right![column]];
    if (one === other) return false;
    if (typeof one !== 'object' || one === null || typeof other !== 'object' || other === null)
      return true;
    return canonicalJson(one) !== canonicalJson(other);
  });
}
