import { Type } from 'typebox';

export const Live = Type.Object({ status: Type.Literal('live') });

export const Ready = Type.Object({
  status: Type.Enum(['ready', 'degraded'], { description: '`degraded` while a stream is parked; everything else is served' }),
  projection: Type.Object({
    caught_up: Type.Boolean(),
    parked_streams: Type.Array(Type.Object({ stream: Type.String(), revision: Type.Integer(), event_type: Type.String()  })),
  }),
  runs_in_flight: Type.Integer({ minimum: 0 }),
});
