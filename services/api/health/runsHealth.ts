import { Type } from 'typebox';

/** What a process says of the runs that it makes, and of whom it asks for them. */
export const runsHealth = {
  runs_in_flight: Type.Optional(
    Type.Integer({ minimum: 0, description: 'Where the process serves the API' }),
  ),
  runs_waiting: Type.Optional(
    Type.Integer({
      minimum: 0,
      description: 'Runs that wait for a place, or for another run of their session; likewise',
    }),
  ),
  open_circuits: Type.Optional(
    Type.Array(Type.String(), {
      description: 'Model providers that are not asked now, since their last calls failed',
    }),
  ),
};
