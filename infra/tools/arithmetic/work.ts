import { LIMITS } from '../../../shared/limits.ts';
import { ToolFailure } from '../tool.ts';

let left = 0;

/** Begins a calculation. There is one at a time, since it never waits for anything. */
export function beginWork(): void {
  left = LIMITS.arithmetic.work;
}

/** Counts work before it is done. Throws ToolFailure when the calculation has had its share. */
export function charge(work: number): void {
  left -= work;
  if (left < 0)
    throw new ToolFailure(
      'The expression takes too much work. Calculate it in several smaller parts.',
    );
}
