import { createContext, Script } from 'node:vm';

const sandbox: { work: () => unknown } = { work: () => undefined };
let context: ReturnType<typeof createContext> | undefined;
const script = new Script('work()');

/**
 * What `work` comes to, which others can make long: a pattern that never ends, or a schema that
 * branches without end. It is cut off in the middle of a loop and of a regular expression, so it
 * must leave nothing half done. Errors: those of `work`, and one when the time is over.
 */
export function withinTime<Result>(work: () => Result, ms: number): Result {
  context ??= createContext(sandbox);
  sandbox.work = work;
  try {
    return script.runInContext(context, { timeout: ms }) as Result;
  } finally {
    sandbox.work = () => undefined;
  }
}

/** Whether an error of `withinTime` says that the time was over. */
export const wasTooLong = (error: unknown): boolean =>
  (error as NodeJS.ErrnoException | undefined)?.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT';
