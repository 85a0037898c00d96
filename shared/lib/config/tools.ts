import { Type } from 'typebox';

/** The tools on offer. */
export const toolOptions = {
  TOOLS_FILE: Type.Optional(
    Type.String({
      description: 'JSON file with the MCP servers whose tools are offered, and the built-in ones',
    }),
  ),
};
