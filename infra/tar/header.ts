/** The only form of tar header in bundles; docs/proof.md specifies it. */
import { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';

export const BLOCK = 512;
/** The offsets of size and time in a header, in octal digits. */
export const TIMES = { from: 124, to: 148, form: /^[0-7]{11} [0-7]{11} $/ } as const;
const NIL = '000000 \0';

/** The number of zero bytes that pad a file to whole blocks. */
export const paddingOf = (bytes: number): number => (BLOCK - (bytes % BLOCK)) % BLOCK;

const octal = (value: number): string => `${value.toString(8).padStart(11, '0')} `;

/** Formats size and time. Throws `configuration_invalid` where the size exceeds 8 GiB. */
export function timesOf(bytes: number, modified: Date): string {
  const times = octal(bytes) + octal(Math.floor(modified.getTime() / 1_000));
  if (TIMES.form.test(times)) return times;
  throw new TurnlogError(
    'configuration_invalid',
    `A file of ${bytes} bytes is larger than an archive takes, which is 8 GiB: redact texts of it.`,
  );
}

/** The only header that a file with this name, size and time may have. */
export function headerOf(name: string, times: string): Buffer {
  const summed = (sum: string): Buffer =>
    Buffer.from(
      `${name.padEnd(100, '\0')}000644 \0${NIL}${NIL}${times}${sum}${'0'.padEnd(101, '\0')}ustar\0${'00'.padEnd(66, '\0')}${NIL}${NIL}`.padEnd(
        BLOCK,
        '\0',
      ),
      'latin1',
    );
  const sum = summed(' '.repeat(8)).reduce((all, byte) => all + byte, 0);
  return summed(`${sum.toString(8).padStart(6, '0')} \0`);
}
