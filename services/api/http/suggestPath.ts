/** Longer paths are no typing mistakes. */
const MAX_CHARACTERS = 200;

const segmentsOf = (path: string): string[] => path.split('/').filter((part) => part !== '');

/** What clients often get wrong: case, singular or plural. */
const loosely = (segment: string): string => segment.toLowerCase().replace(/s$/, '');

const isParameter = (segment: string): boolean => segment.startsWith('{');

/**
 * A function that returns the path that a client has probably meant, in one of the `routes`
 * (`/v1/agents/{agentId}`); undefined when none is close. It tolerates a missing `/v1`, additional
 * slashes, another case, and singular instead of plural.
 */
export function createPathSuggestion(
  routes: readonly { path: string }[],
): (path: string) => string | undefined {
  const templates = routes.map(({ path }) => segmentsOf(path));
  return (path) => {
    if (path.length > MAX_CHARACTERS) return undefined;
    const asked = segmentsOf(path);
    const candidates = [asked, ['v1', ...asked]];
    for (const segments of candidates) {
      const fits = (template: readonly string[]): boolean =>
        template.length === segments.length &&
        template.every((part, at) => isParameter(part) || loosely(part) === loosely(segments[at]!));
      const found = templates.find(fits);
      if (found)
        return `/${found.map((part, at) => (isParameter(part) ? segments[at] : part)).join('/')}`;
    }
    return undefined;
  };
}
