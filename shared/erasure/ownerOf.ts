import { isTurnlogError } from '../lib/errors/turnlogError.ts';
import { decodeEvent } from '../eventlog/codec.ts';
import { metadataFits } from '../eventlog/domainEvent.ts';
import { streamId, streamKind } from '../eventlog/streams.ts';
import type { EventLog } from '../ports/eventStore.ts';
import type { ReadModels } from '../ports/readModels.ts';

interface Sources {
  store: Pick<EventLog, 'readStream'>;
  readModels: Pick<ReadModels, 'findSession' | 'findAgent' | 'findWebhook' | 'findReplay'>;
}

/** As the log says; undefined where it does not, or is damaged. */
async function recordedOwner(
  { store }: Pick<Sources, 'store'>,
  stream: string,
): Promise<string | undefined> {
  try {
    const [first] = await store.readStream(stream, { direction: 'forwards', limit: 1 });
    const { metadata } = first ? decodeEvent(first) : {};
    return metadataFits(metadata) ? metadata.account_id : undefined;
  } catch (error) {
    if (error instanceof SyntaxError || isTurnlogError(error, 'stream_damaged')) return undefined;
    throw error;
  }
}

/**
 * Whose the stream of an agent, a session, a webhook or a replay is; undefined where nobody knows
 * it.
 */
export async function findStreamOwner(
  sources: Sources,
  stream: string,
): Promise<string | undefined> {
  const recorded = await recordedOwner(sources, stream);
  if (recorded !== undefined) return recorded;
  const { findAgent, findSession, findWebhook, findReplay } = sources.readModels;
  const finds = {
    agent: findAgent,
    session: findSession,
    webhook: findWebhook,
    replay: findReplay,
  };
  const kind = streamKind(stream) as keyof typeof finds;
  return (await finds[kind](streamId(stream)))?.account_id;
}
