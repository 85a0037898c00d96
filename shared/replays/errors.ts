import { TurnlogError } from '../lib/errors/turnlogError.ts';

/** The same where there is none and where it is another account's. */
export const replayNotFoundError = (): TurnlogError =>
  new TurnlogError('replay_not_found', 'There is no such replay.');

/** A session made by a replay only accepts runs of that replay. */
export const sessionOfReplayError = (): TurnlogError =>
  new TurnlogError(
    'session_of_replay',
    'The session was made by a replay, and stays as it is: fork it to go on with it.',
  );

/** For a turn of a replay whose model calls a tool as it was not called before. */
export const toolNotRecordedError = (tool: string): TurnlogError =>
  new TurnlogError(
    'tool_not_recorded',
    `The model called ${tool}, and no result of such a call is recorded.`,
  );
