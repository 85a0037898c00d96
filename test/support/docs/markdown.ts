/**
 * A chapter of a page: its heading's text and what stands below it, up to the next heading of its
 * level or above.
 */
interface Chapter {
  heading: string;
  text: string;
}

const withoutCode = (page: string): string => page.replaceAll(/^```[^]*?^```/gm, '');

/** The chapters of a level: `##` is 2. */
export const chapters = (page: string, level: number): Chapter[] =>
  withoutCode(page)
    .split(new RegExp(`^#{${level}} `, 'm'))
    .slice(1)
    .map((part) => {
      const end = part.indexOf('\n');
      const rest = part.slice(end);
      const above = new RegExp(`^#{1,${level}} `, 'm').exec(rest);
      return { heading: part.slice(0, end), text: above ? rest.slice(0, above.index) : rest };
    });

/** The cells of every row of every table, without the heads. */
export const tableRows = (text: string): string[][] =>
  [...text.matchAll(/^\|[-| ]+\|\n((?:\|.*\n?)*)/gm)].flatMap(([, rows]) =>
    rows!
      .trim()
      .split('\n')
      .map((row) =>
        row
          .slice(1, -1)
          .split('|')
          .map((cell) => cell.trim()),
      ),
  );

/** What stands in backticks. */
export const codeSpans = (text: string): string[] =>
  [...withoutCode(text).matchAll(/`([^`\n]+)`/g)].map(([, span]) => span!);

/** The targets of the page's links. */
export const linksOf = (page: string): string[] =>
  [...withoutCode(page).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => target!);

/** The anchors that GitHub gives to the page's headings. */
export const anchorsOf = (page: string): string[] =>
  [...withoutCode(page).matchAll(/^#+ (.+)$/gm)].map(([, heading]) =>
    heading!
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
