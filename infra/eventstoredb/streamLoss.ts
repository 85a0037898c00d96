import { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import type { Recorded } from './collect.ts';

const damaged = (stream: string, why: string): TurnlogError =>
  new TurnlogError('stream_damaged', `The stream ${stream} is damaged: ${why}.`, {
    details: { stream: { message: 'no revision is found', path: stream } },
  });

export const streamEnded = (stream: string): TurnlogError =>
  damaged(stream, 'it was ended for ever in the event store');

export const streamHidden = (stream: string): TurnlogError =>
  damaged(stream, 'all of its events were deleted or are hidden in the event store');

/**
 * The revision before which a stream's metadata hides everything, `$tb`; undefined where it names
 * none.
 */
export function truncationOf(metadata: Recorded): number | undefined {
  try {
    const { $tb } = JSON.parse(Buffer.from(metadata.getData_asU8()).toString('utf8')) as {
      $tb?: unknown;
    };
    return typeof $tb === 'number' && $tb > 0 ? $tb : undefined;
  } catch {
    return undefined;
  }
}
