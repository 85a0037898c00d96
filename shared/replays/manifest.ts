import { defineStream, erasureOf, type Feature } from '../domain/feature.ts';
import { replay } from './decider.ts';
import { replayEventSchemas } from './events.ts';
import { REPLAY_LIMITS } from './limits.ts';
import { projectReplay } from './projection.ts';
import { REPLAY_TABLES } from './tables.ts';

export const replays = {
  stream: defineStream('replay', replayEventSchemas, {
    opening: 'replay.started.v1',
    alwaysRecorded: [
      'replay.session_started.v1',
      'replay.turns_compared.v1',
      'replay.session_ended.v1',
      'replay.ended.v1',
    ],
    project: projectReplay,
    table: 'replays',
    erasure: erasureOf(
      replay,
      (erasure) => ({ type: 'erase_replay', ...erasure }),
      (data) => ({ type: 'replay.erased.v1', data }),
    ),
  }),
  tables: REPLAY_TABLES,
  owners: {
    replay_settings: 'replay_id',
    replay_sessions: 'replay_id',
    replay_turns: 'replay_id',
  },
  errors: ['replay_not_found', 'replay_limit_reached', 'session_of_replay', 'tool_not_recorded'],
  limits: REPLAY_LIMITS,
} as const satisfies Feature;
