import { createHash } from 'node:crypto';
import { RUN_LIMITS } from '../../../shared/runs/limits.ts';
import type { DescribedTool, DescribedTools, ListSummary } from '../messages.ts';
import type { McpServer } from '../server.ts';
import type { MalformedTool } from './malformed.ts';

/** A tool as its server describes it. */
export interface ServerTool {
  name: string;
  description?: string | undefined;
  inputSchema: object;
}

/** A tool in a list. */
type ListedTool = ServerTool | MalformedTool;

/** Names that an agent can list: no commas and no spaces. */
const NAME = /^[A-Za-z0-9_.\-/:]{1,128}$/;
const NAME_CHARS = 128;
/** JSON escapes that no event may hold: NUL and lone surrogates. */
const UNSTORABLE = /\\u(0000|d[89a-f])/i;

function depthOf(value: unknown, most: number): number {
  if (typeof value !== 'object' || value === null) return 0;
  if (most === 0) return 1;
  let deepest = 0;
  for (const part of Object.values(value)) deepest = Math.max(deepest, depthOf(part, most - 1));
  return deepest + 1;
}

/** The schema as JSON. Throws an Error with the reason where it is refused. */
function schemaText(schema: object): string {
  const { schemaBytes, schemaDepth } = RUN_LIMITS.mcp;
  if (depthOf(schema, schemaDepth) > schemaDepth) throw new Error('its schema is nested too deep');
  const json = JSON.stringify(schema);
  if (Buffer.byteLength(json) > schemaBytes)
    throw new Error(`its schema is longer than ${schemaBytes} bytes`);
  if (UNSTORABLE.test(json)) throw new Error('its schema holds what is no text');
  return json;
}

/** A copy, well-formed; a part of a string would keep the whole of it in memory. */
const copyOf = (text: string): string => Buffer.from(text).toString();

function describe(tool: ListedTool): DescribedTool {
  if ('flaw' in tool) throw new Error(tool.flaw);
  const { name, description = '', inputSchema } = tool;
  if (!NAME.test(name)) throw new Error('its name can’t be used');
  return {
    name,
    description: copyOf(
      description.slice(0, RUN_LIMITS.mcp.descriptionChars).replaceAll('\0', '\uFFFD'),
    ),
    schema: schemaText(inputSchema),
  };
}

const bytesOf = ({ name, description, schema }: DescribedTool): number =>
  Buffer.byteLength(name) + Buffer.byteLength(description) + Buffer.byteLength(schema);

/** Memory for a character, in the text of a tool and in its parsed schema, at two bytes. */
const CHARACTER_BYTES = 4;
/** Memory that V8 takes for a member or an item of a parsed schema: up to 70 bytes for each of these. */
const VALUE_BYTES = 72;
const VALUES = /[[{,:]/g;
/** Memory for a tool without its texts. */
const TOOL_BYTES = 512;

const memoryOf = ({ name, description, schema }: DescribedTool): number =>
  TOOL_BYTES +
  CHARACTER_BYTES * (name.length + description.length + schema.length) +
  VALUE_BYTES * (schema.match(VALUES)?.length ?? 0);

/** The summary by which the tools can be recognized, and memory reserved before they are loaded. */
export const summaryOf = (described: DescribedTools): ListSummary => ({
  digest: createHash('sha256').update(JSON.stringify(described)).digest('base64'),
  bytes: described.tools.reduce((sum, tool) => sum + memoryOf(tool), 0),
});

/**
 * Selects the tools to offer from the pages of a server's list, within the limits. Each page is
 * dropped before the next one is requested.
 */
export async function describeTools(
  server: McpServer,
  pages: AsyncIterable<readonly ListedTool[]> | Iterable<readonly ListedTool[]>,
): Promise<DescribedTools> {
  const { tools: mostTools, listBytes } = RUN_LIMITS.mcp;
  const tools: DescribedTool[] = [];
  const refused: string[] = [];
  const missing = new Set(server.tools);
  let selectedCount = 0;
  let bytes = 0;

  function add(tool: ListedTool): void {
    missing.delete(tool.name);
    if (server.tools && !server.tools.includes(tool.name)) return;
    selectedCount += 1;
    if (selectedCount > mostTools) return;
    try {
      const described = describe(tool);
      bytes += bytesOf(described);
      if (bytes > listBytes) throw new Error(`the list is longer than ${listBytes} bytes`);
      tools.push(described);
    } catch (error) {
      const name = JSON.stringify(tool.name.slice(0, NAME_CHARS));
      refused.push(`${name} is not offered: ${(error as Error).message}`);
    }
  }

  for await (const page of pages) page.forEach(add);
  const more = selectedCount - mostTools;
  if (more > 0) refused.push(`${more} further tools are not offered`);
  for (const name of missing) refused.push(`${JSON.stringify(name)} is not there`);
  return { tools, refused };
}
