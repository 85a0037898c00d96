import { Type } from 'typebox';
import { TurnlogError } from '../../shared/errors.ts';
import type { Checkpoint } from '../../shared/ports/eventStore.ts';
import { lazyValidator } from '../../shared/validation.ts';

const validator = lazyValidator(
  Type.Object({
    log_id: Type.String(),
    position: Type.String(),
    event_id: Type.String(),
    event_hash: Type.String(),
  }),
);

/**
 * The checkpoint that a note says; undefined without one. Errors: `publisher_unavailable` when it
 * says something else.
 */
export function parseCheckpoint(text: string | undefined): Checkpoint | undefined {
  if (text === undefined) return undefined;
  const value: unknown = JSON.parse(text);
  if (!validator()(value))
    throw new TurnlogError(
      'publisher_unavailable',
      'The checkpoint topic holds something that is not a checkpoint.',
    );
  return value as Checkpoint;
}
