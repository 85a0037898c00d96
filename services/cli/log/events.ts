import type { Command } from 'commander';
import { decodeEvent } from '../../../shared/eventlog/codec.ts';
import {
  decryptTextsInData,
  type ReadableEvent,
} from '../../../shared/eventlog/encryption/openTexts.ts';
import { toCommitments } from '../../../shared/eventlog/encryption/protectedText.ts';
import type { Position } from '../../../shared/ports/eventStore.ts';
import type { CliContext, WithOperator } from '../context.ts';
import { parsePositionOption } from '../positions.ts';

const BATCH_SIZE = 500;

/**
 * An event with its texts, marked if they are erased or can't be decrypted. Plain text in the place of a
 * ciphertext is not printed: no hash covers it, so it may be forged.
 */
export function formatEvent(event: ReadableEvent): object {
  const { data, ...decoded } = decodeEvent(event);
  return {
    ...decoded,
    data: event.unreadable ? toCommitments(data) : data,
    ...(event.erased && { erased: true }),
    ...(event.unreadable && { unreadable: event.unreadable.message }),
  };
}

/** Prints the events after a position as JSON lines, and then new events as they arrive. */
async function tail(
  { operator, output, signal }: CliContext,
  { after, follow }: { after?: Position; follow: boolean },
): Promise<void> {
  const { store } = operator;
  for await (const batch of store.subscribe({ after, batchSize: BATCH_SIZE, signal })) {
    const events = await decryptTextsInData(store.keys, batch.events);
    for (const event of events) output.stream(formatEvent(event));
    if (batch.caughtUp && !follow) return;
  }
}

/** `events tail`; returns `events` for further commands. */
export function addEventCommands(program: Command, run: WithOperator): Command {
  const events = program.command('events').description('read and copy the log');
  events
    .command('tail')
    .description('print events as JSON lines, and follow the log until Ctrl-C')
    .option('--after <position>', 'begin after this position', parsePositionOption)
    .option('--no-follow', 'stop at the end of the log')
    .action((options: { after?: Position; follow: boolean }) =>
      run((context) => tail(context, options)),
    );

  return events;
}
