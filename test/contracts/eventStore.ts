import { afterAll, beforeAll, describe } from '@jest/globals';
import { appendContract } from './eventStore/appends.ts';
import { checkpointContract } from './eventStore/checkpoints.ts';
import { closingContract } from './eventStore/closing.ts';
import { modelContract } from './eventStore/model.ts';
import { readContract } from './eventStore/reads.ts';
import { startContract, subscriptionContract } from './eventStore/subscriptions.ts';
import type { EventStoreFixture } from './eventStore/support.ts';

export type { EventStoreFixture } from './eventStore/support.ts';

/** What shared/ports/eventStore.ts promises, for any adapter. */
export function eventStoreContract(name: string, open: () => Promise<EventStoreFixture>): void {
  describe(`event store: ${name}`, () => {
    let fixture: EventStoreFixture;
    beforeAll(async () => {
      fixture = await open();
    });
    afterAll(() => fixture.dispose());

    const opened = (): EventStoreFixture => fixture;
    appendContract(opened);
    readContract(opened);
    subscriptionContract(opened);
    startContract(open);
    checkpointContract(open);
    modelContract(opened);
    closingContract(open);
  });
}
