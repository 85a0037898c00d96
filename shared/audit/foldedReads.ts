import { LRUCache } from 'lru-cache';
import type { Actor } from '../commandHandling/context.ts';
import type { HandleContext } from '../commandHandling/handle.ts';
import { LIMITS } from '../limits.ts';
import { recordAudit } from './commands.ts';
import type { FoldedRead } from './foldedReadKinds.ts';
import { entriesUpTo } from '../lib/memory/entriesUpTo.ts';

/** Records reads that clients repeat, once per key, subject and hour. */
export interface ReadAudit {
  /**
   * Resolves once such a read is in the audit, or at once where the kind is not audited. Call it
   * before the texts are disclosed. Errors: those of recordAudit.
   */
  record: (
    context: HandleContext,
    actor: Actor,
    kind: FoldedRead,
    subject: string,
  ) => Promise<void>;
}

/** Each process folds its own reads. `now` is a monotonic clock, in milliseconds. */
export function createReadAudit(
  kinds: ReadonlySet<FoldedRead>,
  now = (): number => performance.now(),
): ReadAudit {
  const reads = new LRUCache<string, { at: number; recorded: Promise<void> }>(
    entriesUpTo(LIMITS.audit.foldedReads),
  );
  return {
    async record(context, actor, kind, subject) {
      if (!kinds.has(kind)) return;
      const read = `${actor.key_id} ${kind} ${subject}`;
      const folded = reads.get(read);
      if (folded && now() - folded.at < LIMITS.audit.foldMs) return folded.recorded;
      const audited = { action: 'read', subject, detail: kind } as const;
      const recorded = recordAudit(context, actor, audited);
      const entry = { at: now(), recorded };
      reads.set(read, entry);
      try {
        await recorded;
      } catch (error) {
        // The next read tries again.
        if (reads.peek(read) === entry) reads.delete(read);
        throw error;
      }
    },
  };
}
