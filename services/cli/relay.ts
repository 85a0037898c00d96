import { InvalidArgumentError, Option, type Command } from 'commander';
import type { Position } from '../../shared/ports/eventStore.ts';
import type { Channel } from '../../shared/publicEvents/schema.ts';
import type { WithOperator } from './context.ts';
import { EXIT } from './exitCodes.ts';
import { parsePositionOption, requirePosition } from './positions.ts';
import { formatRate } from './progressLine.ts';

function parseTopic(text: string): string {
  if (!/^[\w.-]{1,230}$/.test(text))
    throw new InvalidArgumentError(
      'A topic has up to 230 letters, digits, dots, dashes and underscores.',
    );
  return text;
}

interface Options {
  topic: string;
  from?: Position;
  only?: Channel;
}

/** `relay replay` */
export function addRelayCommands(program: Command, run: WithOperator): void {
  program
    .command('relay')
    .description('work on the feed in Kafka (KAFKA_BROKERS)')
    .command('replay')
    .description(
      'publish the events of the log again, to a separate topic, also beside a running relay; an interrupted replay continues next time',
    )
    .requiredOption('--topic <topic>', 'the topic; created when it does not exist', parseTopic)
    .option(
      '--from <position>',
      'begin after this position; default: at the first event',
      parsePositionOption,
    )
    .addOption(
      new Option('--only <channel>', 'publish only this channel').choices(['agents', 'sessions']),
    )
    .action(({ topic, from, only }: Options) =>
      run(async ({ operator, output, progress, signal, exitWith }) => {
        await requirePosition(operator.store, from, signal);
        const began = performance.now();
        let done: { published: number; position: Position | undefined } = {
          published: 0,
          position: undefined,
        };
        let last = 'nothing to publish';
        const complete = await operator.republish(topic, {
          after: from,
          only,
          signal,
          onProgress: ({ published, percent, position }) => {
            done = { published, position };
            last = `${percent.toFixed(1)} %: ${published} messages, ${formatRate(published, began)}, position ${position ?? '-'}`;
            progress.update(() => last);
          },
        });
        progress.end(last);
        output.show(
          { topic, complete, published: done.published, position: done.position ?? null },
          complete
            ? `The events up to now are in ${topic}.`
            : 'Interrupted; the same command goes on from here.',
        );
        if (!complete) exitWith(EXIT.interrupted);
      }),
    );
}
