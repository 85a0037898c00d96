import { TurnlogError } from './errors.ts';

/** The same where there is none and where it is another account's. */
export const replayNotFound = (): TurnlogError =>
  new TurnlogError('replay_not_found', 'There is no such replay.');

/** For a run, by anybody but its replay, of a session that a replay made. */
export const sessionOfReplay = (): TurnlogError =>
  new TurnlogError(
    'session_of_replay',
    'The session was made by a replay, and stays as it is: fork it to go on with it.',
  );
