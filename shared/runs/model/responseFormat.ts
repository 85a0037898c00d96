import { isTurnlogError, TurnlogError } from '../../lib/errors/turnlogError.ts';
import { LIMITS } from '../../limits.ts';
import { abortable } from '../../lib/concurrency/abortable.ts';
import type { OpenRun, RunContext } from '../context.ts';

/** Any JSON object. */
const ANY_OBJECT = '{"type":"object"}';

/** An answer that is not what was asked for; its text is kept with the turn that fails. */
export class UnfitAnswer extends TurnlogError {
  /** Undefined where it is too long to be recorded. */
  readonly output: string | undefined;

  constructor(why: string, output: string) {
    super('model_error', `The model's answer ${why}.`);
    const bytes = Buffer.byteLength(JSON.stringify(output));
    this.output = bytes > LIMITS.http.jsonTextBytes ? undefined : output;
  }
}

/**
 * Makes sure that an answer has the form that its turn asked for. Errors: UnfitAnswer
 * (`model_error`), the signal's reason.
 */
export async function requireFormat(
  { catalogue: { schemas } }: Pick<RunContext, 'catalogue'>,
  { settings: { response_format }, request }: OpenRun,
  output: string,
  signal: AbortSignal,
): Promise<void> {
  if (!response_format || response_format.type === 'text') return;
  const schema = response_format.json_schema?.schema ?? ANY_OBJECT;
  const checked = schemas
    .misfitOf(schema, output, request.actor.account_id)
    .catch((error: unknown) => {
      if (isTurnlogError(error)) return 'could not be checked in time';
      throw error;
    });
  const misfit = await abortable(checked, signal);
  if (misfit !== undefined) throw new UnfitAnswer(misfit, output);
}
