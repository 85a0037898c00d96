import { defineStream, erasureOf, type Feature } from '../domain/feature.ts';
import { session } from './decider.ts';
import { sessionEventSchemas } from './events.ts';
import { SESSION_LIMITS } from './limits.ts';
import { projectSession } from './projection.ts';
import { publicSessionEvents } from './publicEvents.ts';
import { SESSION_TABLES } from './tables.ts';

export const sessions = {
  stream: defineStream('session', sessionEventSchemas, {
    opening: 'session.started.v1',
    // A run that has started is recorded to its end. A summary belongs to the run that needs it.
    alwaysRecorded: [
      'session.tool_called.v1',
      'session.turn_completed.v1',
      'session.turn_failed.v1',
      'session.turn_interrupted.v1',
      'session.compacted.v1',
    ],
    project: projectSession,
    table: 'sessions',
    erasure: erasureOf(
      session,
      (erasure) => ({ type: 'erase_session', ...erasure }),
      (data) => ({ type: 'session.erased.v1', data }),
    ),
  }),
  tables: SESSION_TABLES,
  owners: { turns: 'session_id', session_labels: 'session_id', turn_words: 'session_id' },
  indexedTexts: ['session_labels', 'turn_words'],
  errors: [
    'session_not_found',
    'session_erased',
    'session_busy',
    'origin_erased',
    'turn_not_found',
  ],
  limits: SESSION_LIMITS,
  publicEvents: publicSessionEvents,
} as const satisfies Feature;
