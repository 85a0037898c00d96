import { typeIds } from '../../infra/ids/typeIds.ts';
import type { Clock, Ids } from '../../shared/ports/clock.ts';

export const systemClock: Clock = { now: () => Date.now() };
export const systemIds: Ids = typeIds;
