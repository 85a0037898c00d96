import type { Calling, GroupTool, ToolGroup } from '../../shared/ports/toolGroup.ts';
import type { ToolInfo, ToolResult } from '../../shared/ports/toolbox.ts';
import { lazyValidator, problemsOf } from '../../shared/lib/validation/validation.ts';
import { ToolFailure, type Tool } from './tool.ts';

/** A function that is offered to a model. */
export interface OfferedTool {
  info: ToolInfo;
  call(args: unknown, calling: Calling): Promise<ToolResult>;
}

/** Offers a built-in tool as a function of the same name, and validates its arguments. */
export function offerBuiltIn(tool: Tool): OfferedTool {
  const { name, description, parameters } = tool;
  const validator = lazyValidator(parameters);
  return {
    info: { name, description, parameters: { ...parameters } },
    async call(args, calling) {
      const validate = validator();
      if (validate(args)) return { result: await tool.run(args, calling), is_error: false };
      const problems = problemsOf(validate.errors)
        .map(({ path, message }) => `${path.slice(1) || 'they'} ${message}`)
        .join('; ');
      const schema = JSON.stringify(parameters);
      throw new ToolFailure(
        `The arguments of ${name} do not fit: ${problems}. Their JSON Schema: ${schema}`,
      );
    },
  };
}

/** Offers a tool of a group. The group validates the arguments. */
export const offerGroupTool = (group: ToolGroup, tool: GroupTool): OfferedTool => ({
  info: { name: tool.function, description: tool.description, parameters: tool.parameters },
  call: (args, calling) => group.call(tool.name, args, calling),
});
