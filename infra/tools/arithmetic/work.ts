import { LIMITS } from '../../../shared/limits.ts';
import { ToolFailure } from '../tool.ts';

let remainingWork = 0;

/** Begins a calculation. Calculations do not overlap, because they are synchronous. */
export function beginWork(): void {
  remainingWork = LIMITS.arithmetic.work;
}

/** Counts work before it is done. Throws ToolFailure when the calculation exceeds its limit. */
export function charge(work: number): void {
  remainingWork -= work;
  if (remainingWork < 0)
    throw new ToolFailure(
      'The expression takes too much work. Calculate it in several smaller parts.',
    );
}
