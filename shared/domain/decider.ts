/**
 * The shape of every aggregate: `decide` turns a command into events or throws a Rejection, `evolve` folds an event into the
 * state. Both are pure; time and ids come in with the command. (The decider pattern, as in Emmett's `typing/decider.ts`.)
 */
export interface Decider<Command, State, Event> {
  initialState: State;
  decide: (command: Command, state: State) => Event[];
  evolve: (state: State, event: Event) => State;
}

/** The state after `events`, beginning from the initial one. */
export const replay = <Command, State, Event>(
  decider: Decider<Command, State, Event>,
  events: readonly Event[],
): State => events.reduce(decider.evolve, decider.initialState);
