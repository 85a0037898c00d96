import { RUN_LIMITS } from '../../../shared/runs/limits.ts';
import type { DescribedTool, DescribedTools } from '../messages.ts';
import type { McpServer } from '../server.ts';

/** A tool as its server describes it. */
export interface ServerTool {
  name: string;
  description?: string | undefined;
  inputSchema: object;
}

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

function describe({ name, description = '', inputSchema }: ServerTool): DescribedTool {
  if (!NAME.test(name)) throw new Error('its name can’t be used');
  return {
    name,
    description: description
      .slice(0, RUN_LIMITS.mcp.descriptionChars)
      .replaceAll('\0', '\uFFFD')
      .toWellFormed(),
    schema: schemaText(inputSchema),
  };
}

const bytesOf = ({ name, description, schema }: DescribedTool): number =>
  Buffer.byteLength(name) + Buffer.byteLength(description) + Buffer.byteLength(schema);

/** Selects the tools to offer from the list of a server, within the limits. */
export function describeTools(
  server: McpServer,
  serverTools: readonly ServerTool[],
): DescribedTools {
  const { tools: mostTools, listBytes } = RUN_LIMITS.mcp;
  const tools: DescribedTool[] = [];
  const refused: string[] = [];
  const wanted = serverTools.filter(({ name }) => server.tools?.includes(name) ?? true);
  let bytes = 0;
  for (const tool of wanted.slice(0, mostTools))
    try {
      const described = describe(tool);
      bytes += bytesOf(described);
      if (bytes > listBytes) throw new Error(`the list is longer than ${listBytes} bytes`);
      tools.push(described);
    } catch (error) {
      const name = JSON.stringify(tool.name.slice(0, NAME_CHARS));
      refused.push(`${name} is not offered: ${(error as Error).message}`);
    }
  const more = wanted.length - mostTools;
  if (more > 0) refused.push(`${more} further tools are not offered`);
  const missing =
    server.tools?.filter((name) => !serverTools.some((tool) => tool.name === name)) ?? [];
  for (const name of missing) refused.push(`${JSON.stringify(name)} is not there`);
  return { tools, refused };
}
