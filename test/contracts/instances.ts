import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Instances } from '../../shared/ports/instances.ts';

interface InstancesFixture {
  /** Opens the list as another process would, with a beat every 50 ms. */
  open(): Promise<Instances>;
  dispose(): Promise<void>;
}

/** The suite that every adapter of the instances port passes. */
export function instancesContract(name: string, create: () => Promise<InstancesFixture>): void {
  let fixture: InstancesFixture;
  let here: Instances;
  let there: Instances;

  beforeEach(async () => {
    fixture = await create();
    [here, there] = [await fixture.open(), await fixture.open()];
  });
  afterEach(async () => {
    await here.close();
    await there.close();
    await fixture.dispose();
  });

  const dead = async (olderThanMs: number) =>
    (await here.listDeadInstances(olderThanMs)).map(({ instance_id }) => instance_id);

  /**
   * Asks until the answer is as wanted: a change is due, and when it comes is not what is tested.
   */
  async function until(wanted: string[], olderThanMs: number): Promise<void> {
    while (JSON.stringify(await dead(olderThanMs)) !== JSON.stringify(wanted));
  }

  describe(`${name}: instances`, () => {
    test('an instance that beats is not dead, and one whose process is gone is dead after that time', async () => {
      await here.register('living');
      await there.register('dying');
      expect(await dead(30_000)).toEqual([]);
      await there.close();
      await until(['dying'], 1000);
    });

    test('the list names who is in it, alive or dead, and the time by its own clock', async () => {
      const ending = await here.register('ended');
      await here.register('living');
      await there.register('dying');
      await there.close();
      await until(['dying'], 200);
      await ending.end();
      const { now, ids } = await here.list();
      expect([...ids].toSorted()).toEqual(['dying', 'living']);
      const later = await here.list();
      expect(later.now).toBeGreaterThanOrEqual(now);
      expect(Math.abs(now - Date.now())).toBeLessThan(60_000);
    });

    test('an instance that ended in order is not listed', async () => {
      const registration = await there.register('ended');
      await there.register('dying');
      await registration.end();
      await there.close();
      await until(['dying'], 200);
    });

    test('a forgotten instance is gone, and one that has beaten since it was listed stays', async () => {
      await there.register('dying');
      await there.close();
      await until(['dying'], 200);
      const [listed] = await here.listDeadInstances(200);
      there = await fixture.open();
      await there.register('dying');
      await there.close();
      await here.forget(listed!);
      await until(['dying'], 200);
      for (const instance of await here.listDeadInstances(200)) await here.forget(instance);
      expect(await dead(0)).toEqual([]);
    });
  });
}
