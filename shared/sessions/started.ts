import { Type } from 'typebox';
import { eventSchema, ProtectedTextSchema } from '../domain/schema.ts';
import { TurnNumber as Turn } from './turns/promptParts.ts';

const REPLAY_ROLES = ['replay', 'judge'] as const;

export const SessionStarted = eventSchema(
  'session.started.v1',
  {
    agent_id: Type.String(),
    forked_from: Type.Optional(
      Type.Object(
        {
          session_id: Type.String(),
          turn: Turn,
          revision: Type.Optional(
            Type.Integer({ minimum: 0, description: 'Of the event that ended the turn' }),
          ),
          hash: Type.Optional(Type.String({ description: 'The hash of that event' })),
        },
        { title: 'ForkedFrom', description: 'The session and the turn that it was forked from' },
      ),
    ),
    replay: Type.Optional(
      Type.Object(
        {
          replay_id: Type.String(),
          session_id: Type.String({
            description:
              'The recorded session; of a judge, the one whose turn it judges, which a replay made, too',
          }),
          role: Type.Enum(REPLAY_ROLES, {
            description:
              '`replay`: it runs the turns again; `judge`: a model judges one of them in it',
          }),
        },
        { title: 'ReplayOf', description: 'Of a session that a replay made' },
      ),
    ),
    instruction: Type.Optional(
      ProtectedTextSchema({ description: "What its turns run with in place of the agent's" }),
    ),
  },
  'A session began',
);
