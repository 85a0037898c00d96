import { TurnlogError } from '../../shared/errors.ts';
import type { Clock } from '../../shared/ports/clock.ts';
import type { Toolbox, ToolInfo, ToolResult } from '../../shared/ports/toolbox.ts';
import { lazyValidator, problemsOf } from '../../shared/validation.ts';
import { calculator } from './calculator.ts';
import { createClockTool } from './clock.ts';
import { ToolFailure, type Tool } from './tool.ts';
import { truncate } from './truncate.ts';

/** In bytes of UTF-8. */
const LONGEST_RESULT = 64 * 1024;

/** A tool as the toolbox holds it: what it is called with is text, and checked. */
interface Entry {
  info: ToolInfo;
  call(args: string, signal: AbortSignal): Promise<string>;
}

function parseArguments(args: string, name: string): unknown {
  try {
    return args.trim() === '' ? {} : (JSON.parse(args) as unknown);
  } catch {
    throw new ToolFailure(`The arguments of ${name} are not valid JSON.`);
  }
}

function entry<Parameters extends Tool['parameters']>(tool: Tool<Parameters>): Entry {
  const { name, description, parameters } = tool;
  const validator = lazyValidator(parameters);
  return {
    info: { name, description, parameters: parameters as Record<string, unknown> },
    async call(args, signal) {
      const given = parseArguments(args, name);
      const validate = validator();
      if (validate(given)) return tool.run(given, signal);
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

const failure = (message: string): ToolResult => ({
  result: truncate(message, LONGEST_RESULT),
  is_error: true,
});

/** The built-in tools. Each is one function of its own name. */
export function createToolbox({ clock }: { clock: Clock }): Toolbox {
  const tools = new Map(
    [entry(calculator), entry(createClockTool(clock))].map((tool) => [tool.info.name, tool]),
  );

  return {
    list: () => [...tools.values()].map((tool) => tool.info),
    has: (name) => tools.has(name),
    async definitions(name) {
      const tool = tools.get(name);
      const named = JSON.stringify(name);
      if (!tool)
        throw new TurnlogError('tool_not_supported', `The tool ${named} is not configured.`);
      return [{ type: 'function', function: tool.info }];
    },
    async call(toolName, functionName, args, signal) {
      signal.throwIfAborted();
      const tool = tools.get(toolName);
      if (!tool || functionName !== toolName)
        return failure(`There is no function ${JSON.stringify(functionName)}.`);
      try {
        return { result: truncate(await tool.call(args, signal), LONGEST_RESULT), is_error: false };
      } catch (error) {
        signal.throwIfAborted();
        return failure(
          error instanceof ToolFailure ? error.message : `The tool ${toolName} failed.`,
        );
      }
    },
  };
}
