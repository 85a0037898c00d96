import { textOf } from './projectFiles.ts';

const END = '<!-- End of the generated part. -->\n';

/**
 * The text of a page with `generated` below the line `marker`, in place of what stands there now: up
 * to the end marker, or to the end of the page.
 */
export function withGenerated(page: string, marker: string, generated: string): string {
  const [before = '', ...rest] = textOf(page).split(marker);
  const after = rest.join('').split(END)[1];
  const end = after === undefined ? '' : `\n${END}${after}`;
  return `${before}${marker}\n${generated}\n${end}`;
}
