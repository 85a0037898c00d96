import { createBackoff } from '../../../shared/lib/time/backoff.ts';
import { isTurnlogError, TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { sleep } from '../../../shared/lib/time/sleep.ts';
import type { ApiClient } from './apiClient.ts';

/** The fields of a replay that commands use. */
export interface ReplaySummary {
  replay_id: string;
  status: string;
  code: string | null;
  sums: {
    sessions: Record<'total' | 'completed' | 'stopped' | 'failed', number>;
    turns: Record<'total' | 'same' | 'changed' | 'failed' | 'skipped', number>;
    checks: Record<'passed' | 'failed', number>;
  };
}

interface ServerSentEvent {
  id: string | undefined;
  event: string;
  data: string;
}

const PAUSES = { firstMs: 200, longestMs: 10_000 };
/** Failed attempts in a row before watching gives up. */
const MAX_ATTEMPTS = 20;
/** The service sends no longer events. */
const MAX_EVENT_CHARS = 1_000_000;

function parseEvent(block: string): ServerSentEvent {
  const fields = Object.fromEntries(
    block.split('\n').map((line) => {
      const [, name = '', value = ''] = /^(\w*): ?(.*)$/.exec(line) ?? [];
      return [name, value];
    }),
  );
  return { id: fields['id'], event: fields['event'] ?? '', data: fields['data'] ?? '' };
}

async function* readEvents(response: Response): AsyncGenerator<ServerSentEvent> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk as Uint8Array, { stream: true });
    const blocks = text.split('\n\n');
    text = blocks.pop()!;
    if (text.length > MAX_EVENT_CHARS) throw new Error('An event is too long.');
    yield* blocks.map(parseEvent);
  }
}

/** Follows a replay to its end; resumes from the last event after a lost connection. */
export async function watchReplay(
  client: ApiClient,
  replayId: string,
  onChange: (replay: ReplaySummary) => void,
  signal: AbortSignal,
): Promise<void> {
  const pauses = createBackoff(PAUSES);
  let last: string | undefined;
  for (let attempts = 1; ; attempts += 1) {
    try {
      const response = await client.openStream(`/v1/replays/${replayId}/stream`, last);
      if (response.status === 204) return;
      for await (const { id, event, data } of readEvents(response)) {
        last = id ?? last;
        if (event.startsWith('replay.')) onChange(JSON.parse(data) as ReplaySummary);
        if (event === 'replay.ended') return;
        attempts = 0;
        pauses.reset();
      }
      throw new TurnlogError('store_unavailable', 'The stream ended before the replay.', {
        retriable: true,
      });
    } catch (error) {
      signal.throwIfAborted();
      if ((isTurnlogError(error) && !error.retriable) || attempts >= MAX_ATTEMPTS) throw error;
    }
    await sleep(pauses.next(), signal);
  }
}
