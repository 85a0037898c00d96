import type { ToolDefinition } from '../../shared/sessions/turns/chat.ts';
import { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import { LIMITS } from '../../shared/limits.ts';
import type { GroupTool, ToolGroup, ToolCaller } from '../../shared/ports/toolGroup.ts';
import type { Toolbox, ToolInfo, ToolResult } from '../../shared/ports/toolbox.ts';
import { ToolFailure, type Tool } from './tool.ts';
import { hasMoreValues } from '../../shared/lib/validation/jsonComplexity.ts';
import { lazyValidator, problemsOf } from '../../shared/lib/validation/validation.ts';

const MARK = '… (cut off)';

/**
 * The text itself, or its beginning and a mark when it is longer than `bytes` in UTF-8. Halves of
 * surrogate pairs and NUL, which can't be stored, become U+FFFD.
 */
export function truncate(text: string, bytes: number): string {
  // Each character takes a byte at least. Replacing those of a long text would take long.
  const encoded = Buffer.from(text.slice(0, bytes + 1).replaceAll('\0', '\uFFFD'));
  if (encoded.length <= bytes) return encoded.toString();
  let end = bytes - Buffer.byteLength(MARK);
  // Don't cut within a character: its continuation bytes begin with the bits 10.
  while (end > 0 && ((encoded[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return encoded.toString('utf8', 0, end) + MARK;
}

/** A function that is offered to a model. */
interface OfferedTool {
  info: ToolInfo;
  /** Calls it with arguments as JSON text. */
  call(args: string, calling: ToolCaller): Promise<ToolResult>;
}

const {
  resultBytes,
  functions,
  definitionBytes,
  builtInArgumentsChars,
  argumentsValues,
  problems,
} = LIMITS.tool;

/** Bytes of invalid arguments that are shown to the model. */
const SHOWN_ARGUMENT_BYTES = 1_024;

function parseArguments(args: string, name: string): unknown {
  if (hasMoreValues(args, argumentsValues))
    throw new ToolFailure(
      `The arguments of ${name} have more than ${argumentsValues} values. Make several calls with fewer.`,
    );
  try {
    return JSON.parse(args) as unknown;
  } catch {
    // Requests show the model `{}` in place of these arguments, which some servers reject.
    const written = truncate(args, SHOWN_ARGUMENT_BYTES);
    throw new ToolFailure(`The arguments of ${name} are not valid JSON: ${written}`);
  }
}

/** Offers a built-in tool as a function of the same name, and validates its arguments. */
function offerBuiltIn(tool: Tool): OfferedTool {
  const { name, description, parameters } = tool;
  const validator = lazyValidator(parameters);
  return {
    info: { name, description, parameters: { ...parameters } },
    async call(args, calling) {
      if (args.length > builtInArgumentsChars)
        throw new ToolFailure(
          `The arguments of ${name} are longer than ${builtInArgumentsChars} characters.`,
        );
      const value = parseArguments(args, name);
      const validate = validator();
      if (validate(value)) return { result: await tool.run(value, calling), is_error: false };
      const sentences = problemsOf(validate.errors?.slice(0, problems))
        .map(({ path, message }) => `${path.slice(1) || 'they'} ${message}`)
        .join('; ');
      const schema = JSON.stringify(parameters);
      throw new ToolFailure(
        `The arguments of ${name} do not fit: ${sentences}. Their JSON Schema: ${schema}`,
      );
    },
  };
}

/**
 * Offers a tool of a group, which validates the arguments. They are passed on as text: their values take
 * many times its memory, and a call may last long.
 */
const offerGroupTool = (group: ToolGroup, tool: GroupTool): OfferedTool => ({
  info: { name: tool.function, description: tool.description, parameters: tool.parameters },
  async call(args, calling) {
    parseArguments(args, tool.function);
    return group.call(tool.name, args, calling);
  },
});

/**
 * The meaning of an agent's tool name: a built-in tool, or a group with one or all of its tools.
 */
type NamedTools<BuiltIn> =
  { builtIn: BuiltIn } | { group: ToolGroup; tool: string | undefined } | undefined;

/** Splits an agent's comma-separated tool names. */
const parseToolNames = (names: string): string[] => names.split(',').map((name) => name.trim());

/** Creates the lookup of tool names. A tool that is absent from its group's last list is not found. */
function createToolFinder<BuiltIn>(
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
    if (tool !== undefined && listed && !listed.some((candidate) => candidate.name === tool))
      return undefined;
    return { group, tool };
  };
}

const cut = ({ result, is_error }: ToolResult): ToolResult => ({
  result: truncate(result, resultBytes),
  is_error,
});

const failure = (message: string): ToolResult => cut({ result: message, is_error: true });

const unsupported = (why: string): TurnlogError => new TurnlogError('tool_not_supported', why);

/** Describes all tools of a group as one entry. */
function describeGroup(group: ToolGroup): ToolInfo {
  const all =
    group
      .tools()
      ?.map(({ name }) => name)
      .join(', ') || 'none is known at the moment';
  return { name: group.name, description: `All tools of this server: ${all}.`, parameters: {} };
}

/** Describes one tool of a group. */
const describeTool = (
  group: ToolGroup,
  { name, description, parameters }: GroupTool,
): ToolInfo => ({
  name: `${group.name}/${name}`,
  description,
  parameters,
});

/** Lists a group as one entry for all of its tools, and one for each tool. */
const listGroup = (group: ToolGroup): ToolInfo[] => [
  describeGroup(group),
  ...(group.tools() ?? []).map((tool) => describeTool(group, tool)),
];

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
  let bytes = 2;
  // Stops early: servers may have many times as much.
  const isLonger = definitions.some(
    (definition) => (bytes += Buffer.byteLength(JSON.stringify(definition)) + 1) > definitionBytes,
  );
  if (isLonger)
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
    find(name) {
      const named = find(name);
      if (!named) return undefined;
      if ('builtIn' in named) return named.builtIn.info;
      const { group, tool } = named;
      if (tool === undefined) return describeGroup(group);
      const listed = group.tools()?.find((candidate) => candidate.name === tool);
      return listed && describeTool(group, listed);
    },
    findUnsupported: (names) => parseToolNames(names).find((name) => find(name) === undefined),
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
        return cut(await tool.call(args.trim() || '{}', { account_id, signal }));
      } catch (error) {
        signal.throwIfAborted();
        return failure(error instanceof ToolFailure ? error.message : `The tool ${name} failed.`);
      }
    },
  };
}
