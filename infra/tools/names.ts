import type { ToolGroup } from '../../shared/ports/toolGroup.ts';

/** What a name of an agent's tools denotes: a built-in tool, or a group with one or all of its tools. */
export type NamedTools<BuiltIn> =
  { builtIn: BuiltIn } | { group: ToolGroup; tool: string | undefined } | undefined;

/** Splits an agent's comma-separated tool names. */
export const parseToolNames = (names: string): string[] =>
  names.split(',').map((name) => name.trim());

/** Creates the lookup of tool names. A tool that is absent from its group's last list is not found. */
export function createToolFinder<BuiltIn>(
  builtIns: ReadonlyMap<string, BuiltIn>,
  groups: readonly ToolGroup[],
): (name: string) => NamedTools<BuiltIn> {
  const byName = new Map(groups.map((group) => [group.name, group]));
  return (name) => {
    const builtIn = builtIns.get(name);
    if (builtIn !== undefined) return { builtIn };
    const slash = name.indexOf('/');
    const group = byName.get(slash < 0 ? name : name.slice(0, slash));
    if (!group) return undefined;
    const tool = slash < 0 ? undefined : name.slice(slash + 1);
    const listed = group.tools();
    if (tool !== undefined && listed && !listed.some((other) => other.name === tool))
      return undefined;
    return { group, tool };
  };
}
