import type { ToolGroup } from '../../shared/ports/toolGroup.ts';

/** What one of an agent's names stands for: a built-in tool, or a group and one tool of it. */
export type Named<BuiltIn> =
  { builtIn: BuiltIn } | { group: ToolGroup; tool: string | undefined } | undefined;

/** The names of an agent's tools, which commas separate. */
export const namesIn = (names: string): string[] => names.split(',').map((name) => name.trim());

/** Finds what names stand for. A tool that a group does not have, as far as is known, is none. */
export function createNaming<BuiltIn>(
  builtIns: ReadonlyMap<string, BuiltIn>,
  groups: readonly ToolGroup[],
): (name: string) => Named<BuiltIn> {
  const byName = new Map(groups.map((group) => [group.name, group]));
  return (name) => {
    const builtIn = builtIns.get(name);
    if (builtIn !== undefined) return { builtIn };
    const slash = name.indexOf('/');
    const group = byName.get(slash < 0 ? name : name.slice(0, slash));
    if (!group) return undefined;
    const tool = slash < 0 ? undefined : name.slice(slash + 1);
    const known = group.tools();
    if (tool !== undefined && known && !known.some((other) => other.name === tool))
      return undefined;
    return { group, tool };
  };
}
