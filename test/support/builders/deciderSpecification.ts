import { expect } from '@jest/globals';
import type { Decider } from '../../../shared/domain/decider.ts';
import { Rejection, type RejectionCode } from '../../../shared/domain/rejection.ts';

/** The state after `events`, beginning from the initial one. */
export const replay = <Command, State, Event>(
  decider: Decider<Command, State, Event>,
  events: readonly Event[],
): State => events.reduce(decider.evolve, decider.initialState);

/** given(events).when(command).then(events): how every decider is specified. */
export const specification =
  <Command, State, Event>(decider: Decider<Command, State, Event>) =>
  (...past: Event[]) => ({
    when: (command: Command) => {
      const decide = () => decider.decide(command, replay(decider, past));
      return {
        then: (...events: Event[]) => expect(decide()).toEqual(events),
        thenRejected: (code: RejectionCode) => {
          let thrown: unknown;
          try {
            decide();
          } catch (error) {
            thrown = error;
          }
          expect(thrown).toBeInstanceOf(Rejection);
          expect((thrown as Rejection).code).toBe(code);
        },
      };
    },
  });
