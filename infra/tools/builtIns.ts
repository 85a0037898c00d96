import type { Clock } from '../../shared/ports/clock.ts';
import type { ReadPage } from '../../shared/ports/pages.ts';
import { calculator } from './calculator.ts';
import { createClockTool } from './clock.ts';
import type { Tool } from './tool.ts';
import { createWebFetch } from './webFetch.ts';

/** The built-in tools, in the order in which they are listed. */
export const createBuiltIns = ({
  clock,
  readPage,
}: {
  clock: Clock;
  readPage: ReadPage;
}): readonly Tool[] => [calculator, createClockTool(clock), createWebFetch(readPage)];
