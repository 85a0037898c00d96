const FULL = process.env['TURNLOG_TEST_SIZE'] === 'full';

/**
 * How much of what could go on for ever a test does: kills, random cases, seconds under load.
 * Small, unless `TURNLOG_TEST_SIZE=full` asks for everything (`npm run test:full`).
 */
export const size = <Size>(sizes: { small: Size; full: Size }): Size =>
  FULL ? sizes.full : sizes.small;
