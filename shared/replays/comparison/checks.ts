import type { SessionToReplay } from '../events.ts';
import { TurnlogError } from '../../lib/errors/turnlogError.ts';
import { TOO_SLOW, type SchemaChecker } from '../../ports/schemaChecker.ts';
import { requireModelList, type AgentCatalogue } from '../../agents/catalogue.ts';
import { refusedSchema } from '../../agents/validateParameters.ts';
import { yieldForText } from '../../lib/concurrency/yieldToEventLoop.ts';
import { LIMITS } from '../../limits.ts';

/** A requirement for the answer of a replayed turn. */
type Expectation =
  | { equals: string }
  | { contains: string }
  /** An ECMAScript regular expression with the flag u. */
  | { matches: string }
  /** The answer must be JSON that is valid against this schema. */
  | { json_schema: Record<string, unknown> }
  /** A model judges whether the answer meets the criteria. */
  | { judge: { model: string; criteria: string } };

/** An expectation for each turn, optionally limited to a turn number or a session. */
export type Check = Expectation & { turn?: number; session_id?: string };

/** A JSON Schema for texts that match the pattern, encoded as JSON strings. */
const patternSchema = (pattern: string): string => JSON.stringify({ type: 'string', pattern });

function invalid(path: string, problem: string): TurnlogError {
  const field = path.slice(1);
  const message = `${JSON.stringify(field)} ${problem}.`;
  return new TurnlogError('invalid_request', `The request body is not valid: ${message}`, {
    details: { [field]: { message, path } },
  });
}

/** Throws `invalid_request` for a schema that is rejected before it is compiled. */
function requireCompilableSchemas(checks: readonly Check[]): void {
  for (const [index, check] of checks.entries()) {
    const flaw = 'json_schema' in check ? refusedSchema(check.json_schema) : undefined;
    if (flaw !== undefined) throw invalid(`/checks/${index}/json_schema`, flaw);
  }
}

/** Returns the checks as they are recorded. Throws `invalid_request` for checks that can't be run. */
export async function serializeChecks(
  catalogue: Pick<AgentCatalogue, 'schemas' | 'models'>,
  checks: readonly Check[],
  accountId: string,
): Promise<string> {
  // First: a schema that is nested too deep would overflow the stack when it is written as JSON.
  requireCompilableSchemas(checks);
  const text = JSON.stringify(checks);
  const { checksBytes } = LIMITS.replays;
  if (Buffer.byteLength(text) > checksBytes)
    throw invalid('/checks', `must not be longer than ${checksBytes} bytes as JSON`);
  for (const [index, check] of checks.entries()) {
    const path = `/checks/${index}`;
    if ('judge' in check) requireModelList(catalogue, check.judge.model);
    if ('judge' in check && !catalogue.models.find(check.judge.model)) {
      const offered = catalogue.models.list().map(({ id }) => id);
      throw invalid(`${path}/judge/model`, `must be one of ${offered.join(', ')}`);
    }
    if ('json_schema' in check) {
      const flaw = await catalogue.schemas.flawOf(JSON.stringify(check.json_schema), accountId);
      if (flaw !== undefined) throw invalid(`${path}/json_schema`, flaw);
    }
    if ('matches' in check) {
      const flaw = await catalogue.schemas.flawOf(patternSchema(check.matches), accountId);
      if (flaw === TOO_SLOW) throw invalid(`${path}/matches`, flaw);
      if (flaw !== undefined) throw invalid(`${path}/matches`, 'is not a regular expression');
    }
  }
  return text;
}

/**
 * Throws `invalid_request` unless each check applies to a replayed turn. A check with a wrong turn
 * number would otherwise never run.
 */
export function requireTurnsOf(
  checks: readonly Check[],
  sessions: readonly SessionToReplay[],
  { from = 1, up_to = Infinity }: { from?: number; up_to?: number } = {},
): void {
  for (const [index, check] of checks.entries()) {
    const path = `/checks/${index}`;
    const { session_id, turn } = check;
    const candidates = sessions.filter(
      (session) => (session_id ?? session.session_id) === session.session_id,
    );
    if (candidates.length === 0)
      throw invalid(`${path}/session_id`, 'must be one of the sessions that are replayed');
    if (turn === undefined) continue;
    const isReplayed = candidates.some(
      ({ shared_turns = 0, turns }) =>
        turn >= Math.max(from, shared_turns + 1) && turn <= Math.min(up_to, turns),
    );
    if (!isReplayed) throw invalid(`${path}/turn`, 'must be a turn that is replayed');
  }
}

/**
 * Whether a text contains a part, by Knuth, Morris and Pratt: the time of `String.includes` grows with the
 * product of both lengths once the part is longer than 250 characters.
 */
function containsPart(text: string, part: string): boolean {
  /** The length of the longest start of the part that ends at each of its characters. */
  const borders = new Uint32Array(part.length);
  const matchedWith = (unit: number, matched: number): number => {
    let length = matched;
    while (length > 0 && part.charCodeAt(length) !== unit) length = borders[length - 1]!;
    return part.charCodeAt(length) === unit ? length + 1 : 0;
  };
  for (let at = 1; at < part.length; at += 1)
    borders[at] = matchedWith(part.charCodeAt(at), borders[at - 1]!);
  let matched = 0;
  for (let at = 0; at < text.length && matched < part.length; at += 1)
    matched = matchedWith(text.charCodeAt(at), matched);
  return matched === part.length;
}

/** Dependencies of a check. */
interface Checking {
  schemas: SchemaChecker;
  account_id: string;
}

/** Whether an answer meets a check that needs no model; `undecided` if the check takes too long. */
export async function meetsExpectation(
  { schemas, account_id }: Checking,
  check: Exclude<Expectation, { judge: unknown }>,
  output: string,
): Promise<boolean | 'undecided'> {
  if ('equals' in check) return output === check.equals;
  if ('contains' in check) {
    await yieldForText(account_id, output.length);
    return containsPart(output, check.contains);
  }
  const misfit =
    'matches' in check
      ? await schemas.misfitOf(patternSchema(check.matches), JSON.stringify(output), account_id)
      : await schemas.misfitOf(JSON.stringify(check.json_schema), output, account_id);
  return misfit === TOO_SLOW ? 'undecided' : misfit === undefined;
}
