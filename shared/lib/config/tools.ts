import { Type } from 'typebox';

/** Options of the available tools. */
export const toolOptions = {
  TOOLS_FILE: Type.Optional(
    Type.String({
      description: 'JSON file with the MCP servers whose tools are offered, and the built-in ones',
    }),
  ),
};
