import { Type } from '../../domain/jsonSchema.ts';

/** Options of the available tools. */
export const toolOptions = {
  TOOLS_FILE: Type.Optional(
    Type.String({
      description: 'JSON file of the offered MCP servers and built-in tools',
    }),
  ),
};
