import { Type } from '../../shared/domain/jsonSchema.ts';
import { isoTime, type Clock } from '../../shared/ports/clock.ts';
import { ToolFailure, type Tool } from './tool.ts';

const Arguments = Type.Object(
  {
    time_zone: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 64,
        description: 'IANA name of a time zone, such as Europe/Berlin; UTC when absent',
      }),
    ),
  },
  { additionalProperties: false },
);

function localTime(now: number, timeZone: string): string {
  try {
    return new Intl.DateTimeFormat('en-GB', {
      dateStyle: 'full',
      timeStyle: 'long',
      timeZone,
    }).format(now);
  } catch {
    throw new ToolFailure(
      `${JSON.stringify(timeZone)} is not a time zone. Use an IANA name such as Europe/Berlin.`,
    );
  }
}

/** The tool for the current time in UTC, and in a time zone on request. */
export const createClockTool = (clock: Clock): Tool<typeof Arguments> => ({
  name: 'clock',
  description: 'Tells the current date and time.',
  parameters: Arguments,
  async run({ time_zone }) {
    const now = clock.now();
    return time_zone === undefined
      ? isoTime(now)
      : `${isoTime(now)} (${localTime(now, time_zone)}, ${time_zone})`;
  },
});
