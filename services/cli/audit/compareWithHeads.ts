import {
  compareHeads,
  type HeadComparison,
  type LostHead,
} from '../../../shared/eventlog/reading/compareHeads.ts';
import type { CliContext } from '../context.ts';
import type { HeadsFile } from './headsFile.ts';

function describeLoss({ head, loss, revision }: LostHead): string {
  const stream = `The stream ${head.stream}`;
  const event = `revision ${head.revision} (hash ${head.hash})`;
  if (loss === 'deleted') return `${stream} was deleted: it had come to ${event}.`;
  if (loss === 'rewritten')
    return `${stream} was rewritten: its event at ${event} has another hash now.`;
  return `${stream} was cut: it had come to ${event}, and ${revision! < head.revision ? `ends at revision ${revision} now` : 'that event is gone'}.`;
}

async function compareFirstEvent({ operator }: CliContext, log_id: string): Promise<string[]> {
  const first = (await operator.store.firstEvent())?.id;
  if (first === log_id) return [];
  return [
    `The heads are of a log that begins with the event ${log_id}; this one ${first === undefined ? 'is empty' : `begins with ${first}`}: it is another log, or a copy, or its beginning was deleted.`,
  ];
}

/** The result of a comparison, as data and as text. */
interface Compared {
  data: HeadComparison & { at: string; complete: boolean; of_another_log: boolean };
  lines: string[];
}

/** Looks for every head of a file in the log. `continueHint` says how to continue after an interruption. */
export async function compareWithHeads(
  context: CliContext,
  { origin, heads }: HeadsFile,
  continueHint: string,
): Promise<Compared> {
  const { operator, progress, signal } = context;
  const { at } = origin;
  const other = await compareFirstEvent(context, origin.log_id);
  const found = await compareHeads({
    store: operator.store,
    heads: heads(),
    signal,
    onProgress: (count) => progress.update(() => `${count} of ${origin.streams} heads compared`),
  });
  const { compared, lost, first } = found;
  const complete = !signal.aborted;
  progress.end(
    complete
      ? `${compared} heads compared`
      : `Interrupted after ${compared} heads. ${continueHint}`,
  );
  const data = { ...found, at, complete, of_another_log: other.length > 0 };
  if (first) {
    const all = lost.deleted + lost.cut + lost.rewritten;
    const count = `${all} of ${compared} streams do not fit the heads of ${at}: ${lost.deleted} deleted, ${lost.cut} cut, ${lost.rewritten} rewritten.`;
    return { data, lines: [...other, describeLoss(first), count] };
  }
  const whole = `All ${compared} heads of ${at} are in the log. Their sha256: ${origin.sha256}`;
  return { data, lines: complete ? [...other, whole] : other };
}
