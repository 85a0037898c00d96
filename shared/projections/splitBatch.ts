import { isRestoreDeclaration } from '../eventlog/identity/logIdentity.ts';
import { isDifference, isRemoval, isRowChange } from './change.ts';
import { rowId } from './fold.ts';
import type { PlannedEvent } from './plan.ts';
import type { Change } from './project.ts';

/**
 * Rows of a transaction, which then takes about 50 milliseconds. Most events change two rows at most, so
 * that few batches have more.
 */
const ROWS_OF_PART = 1_000;

/** A removal deletes all rows of an owner, such as the turns of a session. */
const ROWS_OF_REMOVAL = 100;

/** About how many rows a change touches, without looking whether others touch them, too. */
function rowsOfChange(change: Change): number {
  if (isRowChange(change)) return 1;
  if (isDifference(change)) return change.rows;
  return isRemoval(change) ? ROWS_OF_REMOVAL : 0;
}

const rowsAtMost = ({ changes, counts }: PlannedEvent): number =>
  changes.reduce((sum, change) => sum + rowsOfChange(change), counts.length);

/** The rows that an event changes: those with a known key, and an estimate of the number of others. */
function rowsOf({ changes, counts }: PlannedEvent): { named: string[]; others: number } {
  const named = counts.map((key) => `storage/${rowId(key)}`);
  let others = 0;
  for (const change of changes)
    if (isRowChange(change)) named.push(`${change.table}/${rowId(change.key)}`);
    else others += rowsOfChange(change);
  return { named, others };
}

/**
 * Splits a batch into parts of about ROWS_OF_PART rows at most, but never an event. A batch without
 * events is one part, because its progress must be written, too.
 */
export function partsOf(plan: readonly PlannedEvent[]): (readonly PlannedEvent[])[] {
  // Most batches are one part. Naming all of their rows would take a twelfth of the time to apply them.
  if (plan.reduce((sum, event) => sum + rowsAtMost(event), 0) <= ROWS_OF_PART) return [plan];
  // Before a declaration the log had another id than in the checkpoint of the batch.
  const declared = plan.findLastIndex(({ stored }) => isRestoreDeclaration(stored));
  const parts: (readonly PlannedEvent[])[] = [];
  let begin = 0;
  let others = 0;
  let named = new Set<string>();
  for (const [index, event] of plan.entries()) {
    const next = rowsOf(event);
    const added = next.named.filter((row) => !named.has(row)).length + next.others;
    const isFull = named.size + others + added > ROWS_OF_PART;
    if (isFull && index > Math.max(begin, declared)) {
      parts.push(plan.slice(begin, index));
      begin = index;
      others = 0;
      named = new Set();
    }
    for (const row of next.named) named.add(row);
    others += next.others;
  }
  return [...parts, plan.slice(begin)];
}
