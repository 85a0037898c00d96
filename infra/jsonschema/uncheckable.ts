import { RUN_LIMITS } from '../../shared/runs/limits.ts';

/** A property of Unicode, such as \p{L}, has hundreds of ranges; other such classes have a few. */
const CLASSES_PER_PROPERTY = 4;
const PROPERTIES = new Set(['\\p', '\\P']);
const WIDE_CLASSES = new Set(['\\D', '\\S', '\\W', '[^', '.']);
const ESCAPE_OR_CLASS = /\\.|\[\^|\./gs;

function classesIn(pattern: string): number {
  let classes = 0;
  for (const [token] of pattern.matchAll(ESCAPE_OR_CLASS))
    if (PROPERTIES.has(token)) classes += CLASSES_PER_PROPERTY;
    else if (WIDE_CLASSES.has(token)) classes += 1;
  return classes;
}

/**
 * Why a JSON Schema can't be checked: ajv leaves the name `__proto__` out of what a schema describes,
 * and V8 compiles patterns outside the memory and time limits of a thread, with up to 40 KB for a
 * class. Throws a SyntaxError if the text is not JSON.
 */
export function uncheckableReason(schema: string): string | undefined {
  let hasPrototype = false;
  let classes = 0;
  JSON.parse(schema, (name, value: unknown) => {
    hasPrototype ||= name === '__proto__';
    if (name === 'pattern' && typeof value === 'string') classes += classesIn(value);
    if (name === 'patternProperties' && typeof value === 'object' && value !== null)
      for (const pattern of Object.keys(value)) classes += classesIn(pattern);
    return value;
  });
  if (hasPrototype) return 'has a member named __proto__, which can’t be checked';
  const { patternClasses } = RUN_LIMITS.responseFormat;
  if (classes <= patternClasses) return undefined;
  return `has patterns with over ${patternClasses} classes of characters (\\p{…} counts ${CLASSES_PER_PROPERTY}), which take too much memory`;
}
