import type { ToolDefinition } from '../../shared/sessions/turns/chat.ts';
import { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import { LIMITS } from '../../shared/limits.ts';
import type { GroupTool, ToolGroup } from '../../shared/ports/toolGroup.ts';
import type { Toolbox, ToolInfo, ToolResult } from '../../shared/ports/toolbox.ts';
import { createToolFinder, parseToolNames, type NamedTools } from './names.ts';
import { offerGroupTool, offerBuiltIn, type OfferedTool } from './offered.ts';
import { ToolFailure, type Tool } from './tool.ts';
import { truncate } from './truncate.ts';

const { resultBytes, functions, definitionBytes } = LIMITS.tool;

const cut = ({ result, is_error }: ToolResult): ToolResult => ({
  result: truncate(result, resultBytes),
  is_error,
});

const failure = (message: string): ToolResult => cut({ result: message, is_error: true });

const unsupported = (why: string): TurnlogError => new TurnlogError('tool_not_supported', why);

function parseArguments(args: string, name: string): unknown {
  try {
    return args.trim() === '' ? {} : (JSON.parse(args) as unknown);
  } catch {
    throw new ToolFailure(`The arguments of ${name} are not valid JSON.`);
  }
}

/** Lists a group as one entry for all of its tools, and one for each tool. */
function listGroup(group: ToolGroup): ToolInfo[] {
  const tools = group.tools() ?? [];
  const all = tools.map(({ name }) => name).join(', ') || 'none is known at the moment';
  return [
    { name: group.name, description: `All tools of this server: ${all}.`, parameters: {} },
    ...tools.map(({ name, description, parameters }) => ({
      name: `${group.name}/${name}`,
      description,
      parameters,
    })),
  ];
}

/** The named tool of a group, or all of its tools without a name. */
const selectTools = (
  tools: readonly GroupTool[],
  tool: string | undefined,
): readonly GroupTool[] => (tool === undefined ? tools : tools.filter(({ name }) => name === tool));

/** Removes functions that several names denote. */
const distinct = (offered: readonly OfferedTool[]): OfferedTool[] => [
  ...new Map(offered.map((entry) => [entry.info.name, entry])).values(),
];

function requireWithinLimits(definitions: readonly ToolDefinition[]): void {
  if (definitions.length > functions)
    throw unsupported(
      `These tools have ${definitions.length} functions; a model is offered ${functions} at the most. Name fewer, such as mcp:<server>/<tool>.`,
    );
  if (Buffer.byteLength(JSON.stringify(definitions)) > definitionBytes)
    throw unsupported(
      `The definitions of these tools are longer than ${definitionBytes} bytes. Name fewer, such as mcp:<server>/<tool>.`,
    );
}

async function offeredBy(named: NonNullable<NamedTools<OfferedTool>>): Promise<OfferedTool[]> {
  if ('builtIn' in named) return [named.builtIn];
  const { group, tool } = named;
  return selectTools(await group.known(), tool).map((each) => offerGroupTool(group, each));
}

/** Combines the built-in tools with groups of tools that servers provide. */
export function createToolbox(tools: readonly Tool[], groups: readonly ToolGroup[] = []): Toolbox {
  const builtIns = new Map(tools.map((tool) => [tool.name, offerBuiltIn(tool)]));
  const find = createToolFinder(builtIns, groups);

  /** The tools that can be called now, without waiting for a server. */
  function callable(names: string): OfferedTool[] {
    return parseToolNames(names).flatMap((name) => {
      const named = find(name);
      if (!named) return [];
      if ('builtIn' in named) return [named.builtIn];
      const { group, tool } = named;
      return selectTools(group.tools() ?? [], tool).map((each) => offerGroupTool(group, each));
    });
  }

  return {
    list: () => [...[...builtIns.values()].map(({ info }) => info), ...groups.flatMap(listGroup)],
    has: (names) => parseToolNames(names).every((name) => find(name) !== undefined),
    async definitions(names) {
      const offered = await Promise.all(
        parseToolNames(names).map((name) => {
          const named = find(name);
          if (!named) throw unsupported(`The tool ${JSON.stringify(name)} is not configured.`);
          return offeredBy(named);
        }),
      );
      const definitions = distinct(offered.flat()).map(({ info }) => ({
        type: 'function' as const,
        function: info,
      }));
      requireWithinLimits(definitions);
      return definitions;
    },
    health: () => groups.map((group) => group.health()),
    async call(names, { name, arguments: args, account_id }, signal) {
      signal.throwIfAborted();
      const tool = callable(names).find(({ info }) => info.name === name);
      if (!tool) return failure(`There is no function ${JSON.stringify(name)}.`);
      try {
        return cut(await tool.call(parseArguments(args, name), { account_id, signal }));
      } catch (error) {
        signal.throwIfAborted();
        return failure(error instanceof ToolFailure ? error.message : `The tool ${name} failed.`);
      }
    },
  };
}
