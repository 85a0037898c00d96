import { TurnlogError } from '../lib/errors/turnlogError.ts';

/** The same error for an unknown replay and for one of another account. */
export const replayNotFoundError = (): TurnlogError =>
  new TurnlogError('replay_not_found', 'There is no such replay.');

/** A session made by a replay only accepts runs of that replay. */
export const sessionOfReplayError = (): TurnlogError =>
  new TurnlogError(
    'session_of_replay',
    'The session was made by a replay, and stays as it is: fork it to go on with it.',
  );

/** The error of a replayed turn whose model makes a tool call that is not in the recording. */
export const toolNotRecordedError = (tool: string): TurnlogError =>
  new TurnlogError(
    'tool_not_recorded',
    `The model called ${tool}, and no result of such a call is recorded.`,
  );
