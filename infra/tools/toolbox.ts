import type { ToolDefinition } from '../../shared/sessions/turns/chat.ts';
import { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import { LIMITS } from '../../shared/limits.ts';
import type { GroupTool, ToolGroup } from '../../shared/ports/toolGroup.ts';
import type { Toolbox, ToolInfo, ToolResult } from '../../shared/ports/toolbox.ts';
import { createNaming, namesIn, type Named } from './names.ts';
import { offeredOfGroup, offeredTool, type Offered } from './offered.ts';
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

/** What a group's tools are listed as: all of them, and each. */
function listed(group: ToolGroup): ToolInfo[] {
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

/** Those of a group that were asked for. */
const wantedOf = (tools: readonly GroupTool[], tool: string | undefined): readonly GroupTool[] =>
  tool === undefined ? tools : tools.filter(({ name }) => name === tool);

/** Each function once, though several names may lead to it. */
const distinct = (offered: readonly Offered[]): Offered[] => [
  ...new Map(offered.map((entry) => [entry.info.name, entry])).values(),
];

function requireFew(definitions: readonly ToolDefinition[]): void {
  if (definitions.length > functions)
    throw unsupported(
      `These tools have ${definitions.length} functions; a model is offered ${functions} at the most. Name fewer, such as mcp:<server>/<tool>.`,
    );
  if (Buffer.byteLength(JSON.stringify(definitions)) > definitionBytes)
    throw unsupported(
      `The definitions of these tools are longer than ${definitionBytes} bytes. Name fewer, such as mcp:<server>/<tool>.`,
    );
}

async function offeredBy(named: NonNullable<Named<Offered>>): Promise<Offered[]> {
  if ('builtIn' in named) return [named.builtIn];
  const { group, tool } = named;
  return wantedOf(await group.known(), tool).map((each) => offeredOfGroup(group, each));
}

/** The built-in tools, each one function of its own name, and groups that others serve. */
export function createToolbox(tools: readonly Tool[], groups: readonly ToolGroup[] = []): Toolbox {
  const builtIns = new Map(tools.map((tool) => [tool.name, offeredTool(tool)]));
  const find = createNaming(builtIns, groups);

  /** What is known now, without a wait. */
  function callable(names: string): Offered[] {
    return namesIn(names).flatMap((name) => {
      const named = find(name);
      if (!named) return [];
      if ('builtIn' in named) return [named.builtIn];
      const { group, tool } = named;
      return wantedOf(group.tools() ?? [], tool).map((each) => offeredOfGroup(group, each));
    });
  }

  return {
    list: () => [...[...builtIns.values()].map(({ info }) => info), ...groups.flatMap(listed)],
    has: (names) => namesIn(names).every((name) => find(name) !== undefined),
    async definitions(names) {
      const offered = await Promise.all(
        namesIn(names).map((name) => {
          const named = find(name);
          if (!named) throw unsupported(`The tool ${JSON.stringify(name)} is not configured.`);
          return offeredBy(named);
        }),
      );
      const definitions = distinct(offered.flat()).map(({ info }) => ({
        type: 'function' as const,
        function: info,
      }));
      requireFew(definitions);
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
