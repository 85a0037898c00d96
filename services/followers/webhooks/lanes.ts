import { LIMITS } from '../../../shared/limits.ts';
import type { ReadModels } from '../../../shared/ports/readModels.ts';
import type { WebhookRow } from '../../../shared/readModels/tables.ts';
import { resolvesWithin } from '../../../shared/lib/time/resolvesWithin.ts';
import type { KeptProgress } from './keepProgress.ts';
import type { Sending } from './lane.ts';
import { runLane } from './runLane.ts';

/** How long messages on their way may take at the end. */
const END_MS = 2_000;
/** One look in so many also looks for what was deleted. */
const LOOKS = 120;

interface Running {
  row: WebhookRow;
  trouble: string | undefined;
  stop(): Promise<void>;
}

/** What is sent to, and how that goes. */
export interface Lanes {
  /** Begins and ends what the read models say. Errors: `store_unavailable`. */
  look(): Promise<void>;
  count(): { enabled: number; failing: number };
  trouble(): string | undefined;
  stop(): Promise<void>;
}

type Looked = Pick<ReadModels, 'listEnabledWebhooks' | 'findWebhook'>;

/** One lane for each webhook that is enabled. */
export function createLanes(sending: Sending, readModels: Looked, progress: KeptProgress): Lanes {
  const lanes = new Map<string, Running>();
  let looks = 0;

  function start(row: WebhookRow): Running {
    const { webhook_id: id, revision } = row;
    const [stopping, cutting] = [new AbortController(), new AbortController()];
    const lane: Running = { row, trouble: undefined, stop };
    const known = progress.get(id);
    if (known?.revision !== revision) {
      // It was changed or enabled: what failed before says nothing any more.
      const { failing_since: _since, failing_ms: _ms, ...rest } = known ?? {};
      progress.set(id, { ...rest, revision });
    }
    const run = runLane({
      ...sending,
      row,
      progress: () => progress.get(id) ?? { revision },
      onProgress: (now) => progress.set(id, now),
      onTrouble: (reason) => void (lane.trouble = reason),
      taken: new Set(),
      signal: stopping.signal,
      cut: cutting.signal,
    });
    async function stop(): Promise<void> {
      stopping.abort();
      await resolvesWithin(run, END_MS);
      cutting.abort();
      await run;
    }
    return lane;
  }

  /** Of what was deleted, nothing is kept. What read models don't know yet may be there. */
  async function forgetDeleted(enabled: ReadonlySet<string>): Promise<void> {
    for (const id of progress.ids()) {
      if (enabled.has(id)) continue;
      const row = await readModels.findWebhook(id);
      if (row?.deleted) progress.set(id, undefined);
    }
  }

  return {
    async look() {
      const rows = await readModels.listEnabledWebhooks(LIMITS.webhooks.enabled);
      const enabled = new Map(rows.map((row) => [row.webhook_id, row]));
      const over = [...lanes.values()].filter(
        ({ row }) => enabled.get(row.webhook_id)?.revision !== row.revision,
      );
      await Promise.all(over.map((lane) => lane.stop()));
      for (const { row } of over) lanes.delete(row.webhook_id);
      if (looks % LOOKS === 0) await forgetDeleted(new Set(enabled.keys()));
      looks += 1;
      for (const [id, row] of enabled) if (!lanes.has(id)) lanes.set(id, start(row));
    },
    count: () => ({
      enabled: lanes.size,
      failing: [...lanes.keys()].filter((id) => progress.get(id)?.failing_since !== undefined)
        .length,
    }),
    trouble: () => [...lanes.values()].find(({ trouble }) => trouble !== undefined)?.trouble,
    async stop() {
      await Promise.all(Array.from(lanes.values(), (lane) => lane.stop()));
      lanes.clear();
    },
  };
}
