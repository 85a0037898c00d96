import { createHash } from 'node:crypto';
import { LIMITS } from '../../shared/limits.ts';
import { isTurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import type { ToolSchemaChecker } from '../../shared/ports/schemaChecker.ts';
import type { GroupTool } from '../../shared/ports/toolGroup.ts';
import type { DescribedTool, DescribedTools } from './messages.ts';
import type { McpServer } from './server.ts';

/** A tool that is offered. */
export interface ListedTool extends GroupTool {
  /** The JSON Schema of its arguments, as text. */
  schema: string;
}

/** The accepted tools of a server's list, and the reasons for refused ones. */
export interface ToolList {
  tools: readonly ListedTool[];
  /** A sentence each. */
  refused: readonly string[];
}

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

/**
 * Reads the described tools of a server, one at a time. An unchanged tool is the one from before;
 * the schemas of others are checked in a thread.
 */
export async function readToolList(
  server: McpServer,
  described: DescribedTools,
  { before, schemas }: { before: readonly ListedTool[]; schemas: ToolSchemaChecker },
): Promise<ToolList> {
  const previous = new Map(before.map((tool) => [tool.name, tool]));
  const tools = new Map<string, ListedTool>();
  const refused = [...described.refused];
  /** Set with the first answer: on a busy machine, the thread that checks may start slowly. */
  let answeredAt: number | undefined;

  async function flawOf(schema: string): Promise<string | undefined> {
    const tookMs = answeredAt === undefined ? 0 : performance.now() - answeredAt;
    if (tookMs > LIMITS.mcp.schemasMs) return 'reading the tools takes too long';
    try {
      const flaw = await schemas.toolFlawOf(schema, `mcp:${server.name}`);
      return flaw === undefined ? undefined : `its schema ${flaw}`;
    } catch (error) {
      if (isTurnlogError(error)) return 'its schema could not be checked in time';
      throw error;
    } finally {
      answeredAt ??= performance.now();
    }
  }

  async function read({ name, description, schema }: DescribedTool): Promise<void> {
    const earlier = previous.get(name);
    if (earlier?.description === description && earlier.schema === schema)
      return void tools.set(name, earlier);
    const flaw = await flawOf(schema);
    if (flaw !== undefined)
      return void refused.push(`${JSON.stringify(name)} is not offered: ${flaw}`);
    const parameters = JSON.parse(schema) as Record<string, unknown>;
    const tool = { name, function: functionName(server.name, name), description };
    return void tools.set(name, { ...tool, parameters, schema });
  }

  for (const tool of described.tools) await read(tool);
  return { tools: [...tools.values()], refused };
}
