import { isTurnlogError } from '../../shared/errors.ts';
import { requireFit, type Identified } from '../../shared/eventlog/logIdentity.ts';
import type { Checkpoint } from '../../shared/ports/eventStore.ts';

/**
 * Resolves where the log is the one that the read models were built from, or none has been followed
 * yet: another process, with other options, may be the one that follows it. One that was declared to
 * be restored is: they are going to be built anew. Errors: `log_changed`, `store_unavailable`.
 */
export async function requireSameLog(
  log: Identified,
  readModels: { checkpoint(): Promise<Checkpoint | undefined> },
): Promise<void> {
  const checkpoint = await readModels.checkpoint();
  if (!checkpoint) return;
  try {
    await requireFit(log, checkpoint);
  } catch (error) {
    if (!isTurnlogError(error, 'log_restored')) throw error;
  }
}
