/**
 * The shape of every aggregate: `decide` turns a command into events or throws a Rejection,
 * `evolve` folds an event into the state. Both are pure; time and ids come in with the command.
 * (The decider pattern, as in Emmett's `typing/decider.ts`.)
 */
export interface Decider<Command, State, Event> {
  initialState: State;
  decide: (command: Command, state: State) => Event[];
  evolve: (state: State, event: Event) => State;
}
