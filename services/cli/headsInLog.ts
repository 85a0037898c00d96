import { compareHeads, type LostHead } from '../../shared/queries/compareHeads.ts';
import type { CliContext } from './context.ts';
import type { HeadsFile } from './headsFile.ts';

function lostSentence({ head, loss, revision }: LostHead): string {
  const stream = `The stream ${head.stream}`;
  const event = `revision ${head.revision} (hash ${head.hash})`;
  if (loss === 'deleted') return `${stream} was deleted: it had come to ${event}.`;
  if (loss === 'rewritten')
    return `${stream} was rewritten: its event at ${event} has another hash now.`;
  return `${stream} was cut: it had come to ${event}, and ${revision! < head.revision ? `ends at revision ${revision} now` : 'that event is gone'}.`;
}

async function tellOfOtherLog({ operator, print }: CliContext, log_id: string): Promise<void> {
  const first = (await operator.store.firstEvent())?.id;
  if (first === log_id) return;
  print(
    `The heads are of a log that begins with the event ${log_id}; this one ${first === undefined ? 'is empty' : `begins with ${first}`}: it is another log, or a copy, or its beginning was deleted.`,
  );
}

/**
 * Looks for every head of a file in the log. The exit code is 1 when one is not there, 130 when it
 * was interrupted: `interrupted` says how to go on. Errors: `store_unavailable`.
 */
export async function compareWithHeads(
  context: CliContext,
  { origin, heads }: HeadsFile,
  interrupted: string,
): Promise<void> {
  const { operator, print, progress, signal } = context;
  await tellOfOtherLog(context, origin.log_id);
  const { compared, lost, first } = await compareHeads({
    store: operator.store,
    heads: heads(),
    signal,
    onProgress: (count) => progress.update(() => `${count} of ${origin.streams} heads compared`),
  });
  progress.end(
    signal.aborted
      ? `Interrupted after ${compared} heads. ${interrupted}`
      : `${compared} heads compared`,
  );
  if (first) {
    const all = lost.deleted + lost.cut + lost.rewritten;
    print(lostSentence(first));
    print(
      `${all} of ${compared} streams do not fit the heads of ${origin.at}: ${lost.deleted} deleted, ${lost.cut} cut, ${lost.rewritten} rewritten.`,
    );
    process.exitCode = 1;
  } else if (signal.aborted) process.exitCode ||= 130;
  else
    print(`All ${compared} heads of ${origin.at} are in the log. Their sha256: ${origin.sha256}`);
}
