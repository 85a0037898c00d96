import { createBuiltIns } from '../../infra/tools/builtIns.ts';
import { createToolbox } from '../../infra/tools/toolbox.ts';
import { createPageReader } from '../../infra/web/pages.ts';
import type { Toolbox } from '../../shared/ports/toolbox.ts';
import type { Opening } from './opening.ts';
import { systemClock } from './system.ts';

/** The tools on offer. */
export async function openTools(_opening: Opening): Promise<Toolbox> {
  const readPage = createPageReader({ allowPrivate: false });
  return createToolbox(createBuiltIns({ clock: systemClock, readPage }));
}
