import { createHash } from 'node:crypto';
import { setImmediate as yieldToOthers } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { LIMITS } from '../../shared/limits.ts';
import type { GroupTool } from '../../shared/ports/toolGroup.ts';
import { checkFor, plainSchema, type CheckArguments } from './argumentsCheck.ts';
import type { McpServer } from './server.ts';

/** A tool as its server describes it. */
export interface ServerTool {
  name: string;
  description?: string | undefined;
  inputSchema: object;
}

/** A tool that is offered. */
export interface ListedTool extends GroupTool {
  check: CheckArguments;
}

/** The accepted tools of a server's list, and the reasons for refused ones. */
export interface ToolList {
  tools: readonly ListedTool[];
  /** A sentence each. */
  refused: readonly string[];
}

/** Names that an agent can list: no commas and no spaces. */
const NAME = /^[A-Za-z0-9_.\-/:]{1,128}$/;
const LONGEST_FUNCTION = 64;

/**
 * The function name of a server's tool: `<server>__<tool>`. Where that is no valid function name,
 * invalid characters are replaced, the name is cut, and a hash of the tool's name makes it unique.
 */
export function functionName(server: string, tool: string): string {
  const whole = `${server}__${tool}`;
  const plain = whole.replaceAll(/[^\w-]/g, '_');
  if (plain === whole && whole.length <= LONGEST_FUNCTION) return whole;
  const hash = createHash('sha256').update(tool).digest('hex').slice(0, 8);
  return `${plain.slice(0, LONGEST_FUNCTION - hash.length - 1)}_${hash}`;
}

const descriptionOf = ({ description = '' }: ServerTool): string =>
  description.slice(0, LIMITS.mcp.descriptionChars).replaceAll('\0', '\uFFFD').toWellFormed();

/** Reuses an unchanged tool, whose check is compiled already. */
function listTool(server: McpServer, tool: ServerTool, before: ListedTool | undefined): ListedTool {
  if (!NAME.test(tool.name)) throw new Error('its name can’t be used');
  const description = descriptionOf(tool);
  const parameters = plainSchema(tool.inputSchema);
  if (before?.description === description && isDeepStrictEqual(before.parameters, parameters))
    return before;
  return {
    name: tool.name,
    function: functionName(server.name, tool.name),
    description,
    parameters,
    check: checkFor(parameters),
  };
}

/** Selects the tools to offer from the list of a server, and yields to the event loop between two. */
export async function readToolList(
  server: McpServer,
  serverTools: readonly ServerTool[],
  before: readonly ListedTool[],
): Promise<ToolList> {
  const tools = new Map<string, ListedTool>();
  const refused: string[] = [];
  const wanted = serverTools.filter(({ name }) => server.tools?.includes(name) ?? true);
  let spentMs = 0;
  for (const tool of wanted.slice(0, LIMITS.mcp.tools)) {
    await yieldToOthers();
    const began = performance.now();
    const previous = before.find(({ name }) => name === tool.name);
    try {
      if (spentMs > LIMITS.mcp.schemasMs) throw new Error('reading the tools takes too long');
      tools.set(tool.name, listTool(server, tool, previous));
    } catch (error) {
      const name = JSON.stringify(tool.name.slice(0, 128));
      refused.push(`${name} is not offered: ${(error as Error).message}`);
    }
    spentMs += performance.now() - began;
  }
  const more = wanted.length - LIMITS.mcp.tools;
  if (more > 0) refused.push(`${more} further tools are not offered`);
  const missing =
    server.tools?.filter((name) => !serverTools.some((tool) => tool.name === name)) ?? [];
  for (const name of missing) refused.push(`${JSON.stringify(name)} is not there`);
  return { tools: [...tools.values()], refused };
}
