/** Loaded before a process begins: its clock is ahead by TEST_CLOCK_AHEAD_MS milliseconds. */
const ahead = Number(process.env['TEST_CLOCK_AHEAD_MS']);
const Right = Date;

globalThis.Date = class extends Right {
  constructor(...given) {
    super(...(given.length === 0 ? [Right.now() + ahead] : given));
  }

  static now() {
    return Right.now() + ahead;
  }
};
