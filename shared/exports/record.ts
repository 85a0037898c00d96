import type { ModelCall } from '../sessions/turns/promptParts.ts';
import type {
  SessionCompactedData,
  SessionEvent,
  SessionStartedData,
  ToolCalledData,
  TurnStartedData,
} from '../sessions/events.ts';
import { LIMITS } from '../limits.ts';
import type { SessionRow } from '../readModels/tables.ts';

/** What every format says of a session. */
export type ExportedSession = Pick<
  SessionRow,
  'session_id' | 'agent_id' | 'title' | 'labels' | 'created_at'
>;

/** An agent as it was at one revision. */
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

/** Whose turns they are: a fork shares those of sessions that may have had another agent. */
interface Recorder {
  /** What the session that recorded it ran with. */
  ran: Pick<SessionStartedData, 'agent_id' | 'instruction'>;
}

/** A turn that has ended, with all that its events say. */
export interface ExportedTurn extends Recorder {
  kind: 'turn';
  started: Recorded<TurnStartedData>;
  tool_calls: Recorded<ToolCalledData>[];
  ended: Ended & { recorded_at: string };
}

/** Older turns were summed up before the next turn began. */
export type ExportedCompaction = Recorded<SessionCompactedData> & Recorder & { kind: 'compaction' };

export type ExportedRecord = ExportedTurn | ExportedCompaction;

/** Writes one session in a format, record after record. */
export interface SessionWriter {
  /** The text of a record, in pieces. `agent` is undefined where it was erased. */
  add(record: ExportedRecord, agent: ExportedAgent | undefined): Iterable<string>;
  /** What closes the session's text. */
  end(): string;
}

/**
 * Makes the records of a session from its events, which are handed in one after the other from the
 * first on; of a fork those before them that it shares.
 */
export function recordCollector(): (
  event: SessionEvent,
  recorded_at: string,
) => ExportedRecord | undefined {
  let ran: Recorder['ran'] = { agent_id: '' };
  let open: Omit<ExportedTurn, 'ended'> | undefined;
  return (event, recorded_at) => {
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
        return { kind: 'compaction', ran, recorded_at, data: event.data };
      case 'session.started.v1':
        ran = event.data;
        return undefined;
      case 'session.described.v1':
      case 'session.erased.v1':
        return undefined;
      default:
        return event satisfies never;
    }
  };
}

/** What a turn's model answered in the end; undefined where there is none. */
export const exportedOutput = ({ ended: { data } }: ExportedTurn): string | undefined =>
  'output' in data ? data.output : undefined;

/** Why a turn has no answer; undefined where it completed. */
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
  /** Undefined where the turn was cut off before that was recorded. */
  call: ModelCall | undefined;
  /** What the model wrote; null where it only called tools. */
  text: string | null;
  tool_calls: ExportedTurn['tool_calls'];
}

/** The answers of a turn's model, in order: each but the last called tools. */
export function exportedSteps(turn: ExportedTurn): ModelStep[] {
  const { data } = turn.ended;
  const calls = 'calls' in data ? data.calls : [];
  const rounds = turn.tool_calls.at(-1)?.data.round ?? 0;
  const output = exportedOutput(turn);
  const count = Math.max(calls.length, rounds + (output === undefined ? 0 : 1));
  return Array.from({ length: count }, (_, index) => {
    const own = turn.tool_calls.filter(({ data: { round } }) => round === index + 1);
    const answer = index === count - 1 && own.length === 0 ? (output ?? null) : null;
    return { call: calls[index], text: own[0]?.data.content ?? answer, tool_calls: own };
  });
}

/**
 * True for what a reader of JSON takes as it was meant: readers, and JSON.stringify, have a stack, some
 * refuse half of a surrogate pair, and a number beyond a double would be written as null.
 */
function isReadable(value: unknown, levels: number = LIMITS.export.argumentsDepth): boolean {
  if (typeof value === 'string') return value.isWellFormed();
  if (typeof value === 'number') return Number.isFinite(value);
  if (typeof value !== 'object' || value === null) return true;
  if (levels === 0) return false;
  return Object.entries(value).every(
    ([name, part]) => name.isWellFormed() && isReadable(part, levels - 1),
  );
}

/**
 * A tool call's arguments as JSON, where the model's text is an object that every reader takes;
 * undefined otherwise: the text stands then.
 */
export function parseToolArguments({ arguments: text }: ToolCalledData): object | undefined {
  try {
    const value: unknown = JSON.parse(text);
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isObject && isReadable(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
