/**
 * The shape of every aggregate: `decide` turns a command into events or throws a Rejection, and
 * `evolve` folds an event into the state. Both are pure; commands carry times and ids. (The decider
 * pattern, as in Emmett's `typing/decider.ts`.)
 */
export interface Decider<Command, State, Event> {
  initialState: State;
  decide: (command: Command, state: State) => Event[];
  evolve: (state: State, event: Event) => State;
}
