import type { ReplayEvent } from '../domain/replay/events.ts';
import type { RecordedEvent } from '../eventlog/event.ts';
import { streamId } from '../eventlog/streams.ts';
import type { ReplayRow } from '../readModels/tables.ts';
import { absent, present, type Change } from './change.ts';
import { noteErasure } from './erasure.ts';

/** What an event that is not the first changes in the row. */
function patch(event: Exclude<ReplayEvent, { type: 'replay.started.v1' }>): Partial<ReplayRow> {
  switch (event.type) {
    case 'replay.session_started.v1':
    case 'replay.turns_compared.v1':
    case 'replay.session_ended.v1':
      return {};
    case 'replay.ended.v1':
      return { status: event.data.status };
    case 'replay.erased.v1':
      return { status: 'erased' };
    default:
      return event satisfies never;
  }
}

/** What an event of a replay's stream does to `replays`. */
export function projectReplay(recorded: RecordedEvent, event: ReplayEvent): Change[] {
  const replay_id = streamId(recorded.stream);
  const { revision } = recorded;
  const { account_id, recorded_at } = recorded.metadata;

  function change(found: ReplayRow | undefined): ReplayRow | undefined {
    if (event.type === 'replay.started.v1') {
      absent(found, 'replay');
      return {
        replay_id,
        account_id,
        status: 'running',
        created_at: recorded_at,
        updated_at: recorded_at,
        revision,
      };
    }
    if (event.type === 'replay.erased.v1' && !found) return undefined;
    return { ...present(found, 'replay'), ...patch(event), updated_at: recorded_at, revision };
  }

  const changes: Change[] = [{ table: 'replays', key: [replay_id], change }];
  return event.type === 'replay.erased.v1'
    ? [...changes, noteErasure(recorded, event.data)]
    : changes;
}
