import type { SessionStartedData } from '../events.ts';
import {
  oldestTurnOf,
  rebuildRequests,
  type RecordedCall,
  type RecordedCalls,
} from './requests.ts';
import { toolCallRequest, type Turn } from './prompt.ts';
import { requestBody } from './requestBody.ts';
import { hasObjectArguments } from './requestForm.ts';
import { digestOfJson } from '../../eventlog/hashChain.ts';
import { reportDamage, type StreamSource } from '../../eventlog/reading/reportDamage.ts';
import { readFirstEvent } from '../../eventlog/reading/readWhole.ts';
import { sessionStream } from '../../eventlog/streams.ts';
import {
  SLICE_BYTES,
  yieldForText,
  yieldToEventLoop,
} from '../../lib/concurrency/yieldToEventLoop.ts';
import type { Logger } from '../../lib/logger.ts';
import type { PageOf } from '../../ports/readModels.ts';
import { readConfigurationAt } from '../../agents/revisions.ts';
import type { NumberedPage } from '../queries.ts';
import { findTurnEndRevision } from '../history/sessionAt.ts';
import type { TurnLookup, TurnSource } from './turn.ts';
import { readTurnHistory } from './turnHistory.ts';
import { asOriginErased, findRecordingSession } from '../history/origins.ts';

/** A model call of a turn, with its request rebuilt from events. */
export interface RebuiltRequest extends RecordedCall {
  /** Number of the call within the turn, from 1. */
  number: number;
  request_sha256: string;
  /** False if the rebuilt request differs from the sent one. */
  matches: boolean;
}

type RequestSource = TurnSource & { logger: Pick<Logger, 'warn'> };

type RequestsPage = NumberedPage & {
  /** Reserves memory for events of this size in all, in place of what it reserved before. */
  hold: (bytes: number) => void;
};

/** The instruction at the start of a turn's system message. */
async function instructionOf(
  source: StreamSource,
  { agent_id, instruction }: SessionStartedData,
  agentRevision: number,
): Promise<string> {
  return instruction ?? (await readConfigurationAt(source, agent_id, agentRevision)).instruction;
}

/**
 * A page of the requests of a turn's answered model calls after a number, in order, including the
 * compaction right before the turn. Each is rebuilt from events and compared with the hash of the
 * sent request. Differences are logged. Requests of a turn shared by a fork are those of the
 * session that recorded it. Errors: `session_not_found` (also for another account's session),
 * `turn_not_found`, `session_erased`, `origin_erased`, `agent_erased`, `stream_damaged` (noted),
 * `release_too_old`, `key_missing`, `store_unavailable`; those of `hold`.
 */
export async function readRequests(
  source: RequestSource,
  lookup: TurnLookup,
  { hold, ...page }: RequestsPage,
): Promise<PageOf<RebuiltRequest>> {
  const { account_id, session_id, turn } = lookup;
  const revision = await findTurnEndRevision(source, lookup);
  const beginning = await readFirstEvent(source, sessionStream(session_id));
  const recorder = await findRecordingSession(source, beginning, turn);
  if (recorder)
    return readRequests(source, { ...lookup, session_id: recorder }, { hold, ...page }).catch(
      (error: unknown) => {
        throw asOriginErased(error);
      },
    );
  const history = await readTurnHistory(source, { session_id, turn, revision }, hold);
  const { turns, recorded, bytes, summaryOf } = history;
  const sessionStart = beginning.event.data as SessionStartedData;
  const { agent_revision } = recorded.started;
  const rebuilt = rebuildRequests(recorded, {
    instruction:
      recorded.calls.length === 0 ? '' : await instructionOf(source, sessionStart, agent_revision),
    turns,
    summaryOf,
  });
  const breathe = (): Promise<void> => yieldForText(account_id, bytes);
  async function compare(): Promise<PageOf<RebuiltRequest>> {
    const used = turns.filter((earlier) => earlier.turn >= oldestTurnOf(recorded));
    if (recorded.calls.length + recorded.compactions.length > 0)
      await checkToolCalls([...used, recorded.turn], recorded, account_id);
    return compareRequests(rebuilt, { ...page, account_id }, breathe);
  }
  const result = await compare().catch(async (error: unknown) => {
    if (!(error instanceof SyntaxError)) throw error;
    const reason = `the form of the answer of turn ${turn} is no JSON`;
    throw await reportDamage(source, sessionStream(session_id), { reason, revision: undefined });
  });
  const calls = result.rows.filter(({ matches }) => !matches).map(({ number }) => number);
  if (calls.length > 0)
    source.logger.warn(
      { session_id, turn, calls },
      'the events of a turn do not come to the requests that were sent',
    );
  return result;
}

/**
 * Parses the arguments of tool calls in slices, where requests have corrected ones. The results are
 * cached for the rebuilding of the requests.
 */
async function checkToolCalls(
  turns: readonly Turn[],
  { calls }: Pick<RecordedCalls, 'calls'>,
  accountId: string,
): Promise<void> {
  if (!calls.some(({ form }) => form?.corrected_calls)) return;
  let chars = 0;
  for (const call of turns.flatMap(({ tool_calls }) => tool_calls)) {
    chars += call.arguments.length;
    if (chars > SLICE_BYTES) {
      await yieldToEventLoop(accountId);
      chars = call.arguments.length;
    }
    hasObjectArguments(toolCallRequest(call));
  }
}

/** A page of the requests, each compared with the hash of the sent request. */
async function compareRequests(
  rebuilt: Iterable<RecordedCall>,
  { after = 0, limit, bytes, account_id }: NumberedPage & { account_id: string },
  breathe: () => Promise<void>,
): Promise<PageOf<RebuiltRequest>> {
  const rows: RebuiltRequest[] = [];
  let used = 0;
  let number = 0;
  for (const rebuiltCall of rebuilt) {
    number += 1;
    if (number <= after) continue;
    if (rows.length === limit) return { rows, more: true };
    await breathe();
    const { sha256: request_sha256, chars } = await digestOfJson(
      requestBody(rebuiltCall.request),
      account_id,
    );
    used += chars;
    if (rows.length > 0 && used > bytes) return { rows, more: true };
    rows.push({
      ...rebuiltCall,
      number,
      request_sha256,
      matches: request_sha256 === rebuiltCall.call.request_sha256,
    });
  }
  return { rows, more: false };
}
