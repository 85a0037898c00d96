import { replay } from './decider.ts';
import { replayStream } from '../eventlog/streams.ts';
import { ownReplay } from './queries.ts';
import { untilShown, type Actor, type CommandContext } from '../commandHandling/context.ts';
import { handle } from '../commandHandling/handle.ts';
import { shortStream } from '../commandHandling/targetStream.ts';

/**
 * Ends the account's replay: nothing more is begun, and turns that run are interrupted. One that has
 * ended stays as it is. Errors: `replay_not_found`, those of handle.
 */
export async function cancelReplay(
  context: CommandContext,
  actor: Actor,
  replayId: string,
): Promise<void> {
  await ownReplay(context, actor.account_id, replayId);
  const target = shortStream(replayStream(replayId), replay);
  const command = { type: 'end_replay', status: 'cancelled' } as const;
  const appended = await handle(context, actor, target, command);
  if (appended) await untilShown(context, appended.position);
}
