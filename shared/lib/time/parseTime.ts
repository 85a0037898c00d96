const DATE = /^(\d{4})-(\d\d)-(\d\d)$/;
/** RFC 3339. In a query, a `+` that is not encoded arrives as a space. */
const TIME =
  /^(\d{4}-\d\d-\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,20}))?(?:[Zz]|([+\- ])(\d\d):(\d\d))$/;

const [MINUTE_MS, HOUR_MS, DAY_MS] = [60_000, 3_600_000, 86_400_000];
const [FIRST, LAST] = [Date.parse('0000-01-01T00:00:00Z'), Date.parse('9999-12-31T23:59:59.999Z')];

const [YEAR, MINUTES] = ['[1-9]\\d{3}', '([01]\\d|2[0-3]):[0-5]\\d'];
const LEAP_YEAR = '[1-9]\\d(0[48]|[2468][048]|[13579][26])|([2468][048]|[13579][26])00';
const DAYS = [
  '(0[13578]|1[02])-(0[1-9]|[12]\\d|3[01])',
  '(0[469]|11)-(0[1-9]|[12]\\d|30)',
  '02-(0[1-9]|1\\d|2[0-8])',
].join('|');

/** The pattern of times for documents, in the years that clients use and without leap seconds. */
export const TIME_PATTERN = `^(${YEAR}-(${DAYS})|(${LEAP_YEAR})-02-29)([Tt ]${MINUTES}:[0-5]\\d(\\.\\d{1,20})?([Zz]|[+\\- ]${MINUTES}))?$`;

/** The beginning of a date in UTC, in milliseconds since the epoch; undefined for an impossible one. */
export function parseDate(text: string): number | undefined {
  const [, year, month, day] = DATE.exec(text) ?? [];
  if (year === undefined) return undefined;
  const time = Date.parse(`${text}T00:00:00Z`);
  // February 30 would otherwise be March 2.
  const isPossible = new Date(time).getUTCDate() === Number(day) && Number(month) >= 1;
  return isPossible ? time : undefined;
}

/**
 * Parses a time of RFC 3339 with any offset, or a plain date, which is its beginning in UTC. Returns
 * milliseconds since the epoch, and undefined for other text, impossible times, and years outside
 * 0000 to 9999 in UTC. Fractions of a millisecond are cut. Every time that a client or an operator
 * gives is read here.
 */
export function parseTime(text: string): number | undefined {
  const [, date, ...parts] = TIME.exec(text) ?? [];
  if (date === undefined) return parseDate(text);
  const day = parseDate(date);
  const [hour, minute, second] = parts.slice(0, 3).map(Number) as [number, number, number];
  const [fraction = '', sign, offsetHour = '0', offsetMinute = '0'] = parts.slice(3);
  if (day === undefined || hour > 23 || minute > 59 || second > 60) return undefined;
  if (Number(offsetHour) > 23 || Number(offsetMinute) > 59) return undefined;
  const offset = Number(offsetHour) * HOUR_MS + Number(offsetMinute) * MINUTE_MS;
  const ms = second === 60 ? 0 : Number(fraction.slice(0, 3).padEnd(3, '0'));
  const time =
    day +
    hour * HOUR_MS +
    minute * MINUTE_MS +
    second * 1_000 +
    ms -
    (sign === '-' ? -offset : offset);
  // A leap second is the last one of a day in UTC.
  if (second === 60 && time % DAY_MS !== 0) return undefined;
  return time < FIRST || time > LAST ? undefined : time;
}
