import type { ModelCall } from '../sessions/turns/promptParts.ts';
import {
  isBesideTurns,
  type SessionCompactedData,
  type SessionEvent,
  type SessionStartedData,
  type ToolCalledData,
  type TurnStartedData,
} from '../sessions/events.ts';
import { SESSION_TABLES } from '../sessions/tables.ts';
import { textsIn, type TextsOf } from '../readModels/table.ts';
import { hasMoreValues } from '../lib/validation/jsonComplexity.ts';
import { findJsonToken, isExactNumber } from '../lib/validation/jsonTokens.ts';
import { LIMITS } from '../limits.ts';
import type { SessionRow } from '../readModels/tables.ts';

/** The texts that clients attached to a session. */
type SessionTexts = TextsOf<typeof SESSION_TABLES.sessions>;

/** The session fields that every format exports. */
export type ExportedSession = Pick<SessionRow, 'session_id' | 'agent_id' | 'created_at'> &
  SessionTexts;

/** The texts of a session, which formats show beside its ids. */
export const exportedTexts = (session: ExportedSession): SessionTexts =>
  textsIn(SESSION_TABLES.sessions, session);

/** An agent at one revision. */
export interface ExportedAgent {
  name: string;
  instruction: string;
}

interface Recorded<Data> {
  recorded_at: string;
  data: Data;
}

type Ended = Extract<
  SessionEvent,
  {
    type: 'session.turn_completed.v1' | 'session.turn_failed.v1' | 'session.turn_interrupted.v1';
  }
>;

/** A completed, failed or interrupted turn with all data of its events. */
export interface ExportedTurn {
  kind: 'turn';
  /** The agent and instruction of the session that recorded it; for a fork, maybe another one. */
  ran: Pick<SessionStartedData, 'agent_id' | 'instruction'>;
  started: Recorded<TurnStartedData>;
  tool_calls: Recorded<ToolCalledData>[];
  ended: Ended & { recorded_at: string };
}

/** A summary of older turns, made before the next turn began. */
export type ExportedCompaction = Recorded<SessionCompactedData> & { kind: 'compaction' };

export type ExportedRecord = ExportedTurn | ExportedCompaction;

/** Writes one session in a format, one record at a time. */
export interface SessionWriter {
  /** The text of a record, in pieces. `agent` is that of a turn, unless it was erased. */
  add(record: ExportedRecord, agent: ExportedAgent | undefined): Iterable<string>;
  /** The text that ends the session, in pieces. */
  end(): Iterable<string>;
}

/**
 * Collects the definitions of all tools that a session offered, by their names, as JSON. Tool servers
 * can rename their tools at any time, so definitions beyond LIMITS.export.toolsChars are left out.
 */
export function collectTools() {
  const definitions = new Map<string, string>();
  let chars = 0;
  return {
    add({ started }: ExportedTurn): void {
      for (const tool of started.data.settings.tools ?? []) {
        const json = JSON.stringify(tool);
        const { name } = tool.function;
        chars += json.length - (definitions.get(name)?.length ?? 0);
        definitions.set(name, json);
        if (chars <= LIMITS.export.toolsChars) continue;
        // The earlier definition of the name would be wrong.
        definitions.delete(name);
        chars -= json.length;
      }
    },
    /** The definitions for `jsonSlices`, which parses each when it is due; undefined if there are none. */
    list: (): (() => object)[] | undefined =>
      definitions.size === 0
        ? undefined
        : [...definitions.values()].map((json) => () => JSON.parse(json) as object),
  };
}

/**
 * Builds the records of a session from its events, which must be passed in order from the first
 * one. For a fork, the events of the shared turns come first.
 */
export function recordCollector(): (
  event: SessionEvent,
  recorded_at: string,
) => ExportedRecord | undefined {
  let ran: ExportedTurn['ran'] = { agent_id: '' };
  let open: Omit<ExportedTurn, 'ended'> | undefined;
  return (event, recorded_at) => {
    if (isBesideTurns(event)) return undefined;
    switch (event.type) {
      case 'session.turn_started.v1':
        open = { kind: 'turn', ran, started: { recorded_at, data: event.data }, tool_calls: [] };
        return undefined;
      case 'session.tool_called.v1':
        open?.tool_calls.push({ recorded_at, data: event.data });
        return undefined;
      case 'session.turn_completed.v1':
      case 'session.turn_failed.v1':
      case 'session.turn_interrupted.v1': {
        const turn = open && { ...open, ended: { ...event, recorded_at } };
        open = undefined;
        return turn;
      }
      case 'session.compacted.v1':
        return { kind: 'compaction', recorded_at, data: event.data };
      case 'session.started.v1':
        ran = event.data;
        return undefined;
      case 'session.erased.v1':
        return undefined;
      default:
        return event satisfies never;
    }
  };
}

/** The final answer of a turn; undefined when it has none. */
export const exportedOutput = ({ ended: { data } }: ExportedTurn): string | undefined =>
  'output' in data ? data.output : undefined;

/** The reason that a turn has no answer; undefined when it completed. */
export function exportedFailure({
  ended,
}: ExportedTurn): { code: string; message: string } | undefined {
  if (ended.type === 'session.turn_completed.v1') return undefined;
  if (ended.type === 'session.turn_failed.v1') return ended.data;
  const { reason, cause } = ended.data;
  return { code: reason, message: `The turn was interrupted: ${cause ?? reason}.` };
}

/** One answer of the model within a turn. */
export interface ModelStep {
  /** Undefined when the turn was interrupted before the call was recorded. */
  call: ModelCall | undefined;
  /** The text of the model; null when it only called tools. */
  text: string | null;
  tool_calls: ExportedTurn['tool_calls'];
}

/** The answers of the model in a turn, in order. All but the last one called tools. */
export function exportedSteps(turn: ExportedTurn): ModelStep[] {
  const { data } = turn.ended;
  const calls = 'calls' in data ? data.calls : [];
  const rounds = turn.tool_calls.at(-1)?.data.round ?? 0;
  const output = exportedOutput(turn);
  const count = Math.max(calls.length, rounds + (output === undefined ? 0 : 1));
  return Array.from({ length: count }, (_, index) => {
    const tool_calls = turn.tool_calls.filter(({ data: { round } }) => round === index + 1);
    const answer = index === count - 1 && tool_calls.length === 0 ? (output ?? null) : null;
    return { call: calls[index], text: tool_calls[0]?.data.content ?? answer, tool_calls };
  });
}

/**
 * True for a value that any JSON parser can read. Deep nesting can overflow the stack of parsers and of
 * JSON.stringify, and some parsers reject lone surrogates.
 */
function isReadable(value: unknown, levels: number = LIMITS.export.argumentsDepth): boolean {
  if (typeof value === 'string') return value.isWellFormed();
  if (typeof value !== 'object' || value === null) return true;
  if (levels === 0) return false;
  return Object.entries(value).every(
    ([name, part]) => name.isWellFormed() && isReadable(part, levels - 1),
  );
}

/** The members of all objects in a value. */
function countMembers(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const parts = Object.values(value) as unknown[];
  const own = Array.isArray(value) ? 0 : parts.length;
  return parts.reduce<number>((sum, part) => sum + countMembers(part), own);
}

/** True when no number changes, and no name repeats, of which a parser keeps one. */
function isWholeText(text: string, value: object): boolean {
  let names = 0;
  const changed = findJsonToken(text, (token, kind) => {
    if (kind === 'name') names += 1;
    return kind === 'number' && !isExactNumber(token);
  });
  return !changed && names === countMembers(value);
}

/**
 * Parses the arguments of a tool call; undefined when they are not an object that every JSON parser
 * can read, would change, or have so many values that parsing them would take long. Exports then
 * contain the text of the model.
 */
export function parseToolArguments({ arguments: text }: ToolCalledData): object | undefined {
  if (hasMoreValues(text, LIMITS.export.argumentsValues)) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isObject && isReadable(value) && isWholeText(text, value) ? value : undefined;
  } catch {
    return undefined;
  }
}
