import { createHash } from 'node:crypto';
import { setImmediate as yieldToOthers } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { LIMITS } from '../../shared/limits.ts';
import type { GroupTool } from '../../shared/ports/toolGroup.ts';
import { checkFor, plainSchema, type CheckArguments } from './argumentsCheck.ts';
import type { McpServer } from './server.ts';

/** A tool as its server tells of it. */
export interface ToldTool {
  name: string;
  description?: string | undefined;
  inputSchema: object;
}

/** A tool that is offered. */
export interface ListedTool extends GroupTool {
  check: CheckArguments;
}

/** What is taken of a server's list, and why the rest is not. */
export interface ToolList {
  tools: readonly ListedTool[];
  /** A sentence each. */
  refused: readonly string[];
}

/** What an agent can name: no commas and no blanks. */
const NAME = /^[A-Za-z0-9_.\-/:]{1,128}$/;
const LONGEST_FUNCTION = 64;

/**
 * The function of a server's tool: `<server>__<tool>`. Where that can't be a function's name, what
 * doesn't fit is left out, and a hash of the tool's name tells it from others.
 */
export function functionName(server: string, tool: string): string {
  const whole = `${server}__${tool}`;
  const plain = whole.replaceAll(/[^\w-]/g, '_');
  if (plain === whole && whole.length <= LONGEST_FUNCTION) return whole;
  const hash = createHash('sha256').update(tool).digest('hex').slice(0, 8);
  return `${plain.slice(0, LONGEST_FUNCTION - hash.length - 1)}_${hash}`;
}

const descriptionOf = ({ description = '' }: ToldTool): string =>
  description.slice(0, LIMITS.mcp.descriptionChars).replaceAll('\0', '\uFFFD').toWellFormed();

/** The tool as it was listed before, where nothing of it has changed: its check is made already. */
function listedTool(server: McpServer, told: ToldTool, before: ListedTool | undefined): ListedTool {
  if (!NAME.test(told.name)) throw new Error('its name can’t be used');
  const description = descriptionOf(told);
  const parameters = plainSchema(told.inputSchema);
  if (before?.description === description && isDeepStrictEqual(before.parameters, parameters))
    return before;
  return {
    name: told.name,
    function: functionName(server.name, told.name),
    description,
    parameters,
    check: checkFor(parameters),
  };
}

/**
 * What is offered of the tools that a server tells of; it is a stranger. Others have the event loop
 * between two tools.
 */
export async function readToolList(
  server: McpServer,
  told: readonly ToldTool[],
  before: readonly ListedTool[],
): Promise<ToolList> {
  const tools = new Map<string, ListedTool>();
  const refused: string[] = [];
  const wanted = told.filter(({ name }) => server.tools?.includes(name) ?? true);
  let spentMs = 0;
  for (const tool of wanted.slice(0, LIMITS.mcp.tools)) {
    await yieldToOthers();
    const began = performance.now();
    const known = before.find(({ name }) => name === tool.name);
    try {
      if (spentMs > LIMITS.mcp.schemasMs) throw new Error('reading the tools takes too long');
      tools.set(tool.name, listedTool(server, tool, known));
    } catch (error) {
      const name = JSON.stringify(tool.name.slice(0, 128));
      refused.push(`${name} is not offered: ${(error as Error).message}`);
    }
    spentMs += performance.now() - began;
  }
  const more = wanted.length - LIMITS.mcp.tools;
  if (more > 0) refused.push(`${more} further tools are not offered`);
  const missing = server.tools?.filter((name) => !told.some((tool) => tool.name === name)) ?? [];
  for (const name of missing) refused.push(`${JSON.stringify(name)} is not there`);
  return { tools: [...tools.values()], refused };
}
