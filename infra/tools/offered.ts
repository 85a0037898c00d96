import type { Calling, GroupTool, ToolGroup } from '../../shared/ports/toolGroup.ts';
import type { ToolInfo, ToolResult } from '../../shared/ports/toolbox.ts';
import { lazyValidator, problemsOf } from '../../shared/lib/validation/validation.ts';
import { ToolFailure, type Tool } from './tool.ts';

/** A function as a model is offered it. */
export interface Offered {
  info: ToolInfo;
  /** Errors: ToolFailure, whatever a tool throws. */
  call(args: unknown, calling: Calling): Promise<ToolResult>;
}

/** A built-in tool: a function of its own name, whose arguments are checked. */
export function offeredTool(tool: Tool): Offered {
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

/** A tool of a group, which checks its arguments itself. */
export const offeredOfGroup = (group: ToolGroup, tool: GroupTool): Offered => ({
  info: { name: tool.function, description: tool.description, parameters: tool.parameters },
  call: (args, calling) => group.call(tool.name, args, calling),
});
