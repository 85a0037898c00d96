import type { SessionStartedData } from '../events.ts';
import { rebuildRequests, type RecordedCall } from './requests.ts';
import { turnsFromEvents } from './prompt.ts';
import { canonicalJson } from '../../eventlog/canonicalJson.ts';
import { sha256 } from '../../eventlog/hashChain.ts';
import { reportDamage, type StreamSource } from '../../eventlog/reading/reportDamage.ts';
import { readFirstEvent } from '../../eventlog/reading/readWhole.ts';
import { sessionStream } from '../../eventlog/streams.ts';
import { yieldForText } from '../../lib/concurrency/yieldToEventLoop.ts';
import type { Logger } from '../../lib/logger.ts';
import type { PageOf } from '../../ports/readModels.ts';
import { readConfigurationAt } from '../../agents/revisions.ts';
import type { NumberedPage } from '../queries.ts';
import { findTurnEndRevision } from '../history/sessionAt.ts';
import type { TurnLookup, TurnSource } from './turn.ts';
import { readTurnHistory } from './turnHistory.ts';
import { asOriginErased, findRecordingSession } from '../history/origins.ts';

/** A model call of a turn, with its request as the events come to it. */
export interface RebuiltRequest extends RecordedCall {
  /** Its place among those of the turn, from 1. */
  number: number;
  request_sha256: string;
  /** False where the events do not come to the request that was sent. */
  matches: boolean;
}

type RequestSource = TurnSource & { logger: Pick<Logger, 'warn'> };

type RequestsPage = NumberedPage & {
  /** Takes room for events of so many bytes, which are held until the requests are told. */
  hold: (bytes: number) => Promise<void>;
};

/** What the system message of a turn begins with. */
async function instructionOf(
  source: StreamSource,
  { agent_id, instruction }: SessionStartedData,
  agentRevision: number,
): Promise<string> {
  return instruction ?? (await readConfigurationAt(source, agent_id, agentRevision)).instruction;
}

/**
 * A page of the requests of a turn's model calls that were answered, each after its number, in the
 * order in which they were made, with the compaction that was made right before the turn: as its
 * events come to them, and whether those are the ones that were sent. One that is not is told to the
 * log. Those of a turn that a fork shares are those of the session that recorded it.
 * Errors: `session_not_found`, also for another account's, `turn_not_found`, `session_erased`,
 * `origin_erased`, `agent_erased`, `stream_damaged` (noted), `release_too_old`, `key_missing`, `store_unavailable`;
 * those of `hold`.
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
  const { events, recorded, bytes, summaryOf } = history;
  const sessionStart = beginning.event.data as SessionStartedData;
  const { agent_revision } = recorded.started;
  const made = rebuildRequests(recorded, {
    instruction:
      recorded.calls.length === 0 ? '' : await instructionOf(source, sessionStart, agent_revision),
    turns: turnsFromEvents(events),
    summaryOf,
  });
  const breathe = (): Promise<void> => yieldForText(account_id, bytes);
  const result = await compareRequests(made, page, breathe).catch(async (error: unknown) => {
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

/** A page of the requests, each with its hash. */
async function compareRequests(
  made: Iterable<RecordedCall>,
  { after = 0, limit, bytes }: NumberedPage,
  breathe: () => Promise<void>,
): Promise<PageOf<RebuiltRequest>> {
  const rows: RebuiltRequest[] = [];
  let used = 0;
  let number = 0;
  for (const one of made) {
    number += 1;
    if (number <= after) continue;
    if (rows.length === limit) return { rows, more: true };
    await breathe();
    const text = canonicalJson(one.request);
    used += text.length;
    if (rows.length > 0 && used > bytes) return { rows, more: true };
    const request_sha256 = sha256(text);
    rows.push({
      ...one,
      number,
      request_sha256,
      matches: request_sha256 === one.call.request_sha256,
    });
  }
  return { rows, more: false };
}
