import { readLogTrees } from '../../../shared/transparency/logTrees.ts';
import { replaceTree } from '../../../shared/restoredLogs/declareTree.ts';
import type { CliContext } from '../context.ts';

/** Declares that another tree begins, where the current one is lost, or its key. */
export async function declareTreeAnew(
  { operator, output }: CliContext,
  { reason }: { reason: string },
): Promise<void> {
  const before = await readLogTrees(operator.store);
  const id = await replaceTree(operator, reason);
  const replaces = [...(before?.declared.keys() ?? [])];
  output.show(
    { tree_id: id, replaces, reason },
    `The transparency log ends with ${id} in its origin from now on.`,
    replaces.length === 0 ? 'None was declared before.' : `It replaces: ${replaces.join(', ')}.`,
    'The service begins it with the first event of the log. To witnesses and verifiers it is another log: give them its origin and its key (audit vkey). Keep what was kept of the old one: only that shows whether the log has changed.',
  );
}
