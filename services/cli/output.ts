/**
 * What a terminal obeys rather than shows: control characters (line breaks and escape sequences
 * too), characters that turn the direction of writing or have no width, and halves of characters.
 * Joiners within emoji stay.
 */
const UNPRINTABLE = /(?![\u200C\u200D])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

const escapeCharacter = (text: string): string =>
  Array.from(
    { length: text.length },
    (_, at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, '0')}`,
  ).join('');

/** A text of somebody else's, on one line and as what it is: `\u001b[2J` does nothing. */
export const escapeControls = (text: string): string => text.replace(UNPRINTABLE, escapeCharacter);

/** JSON on one line, in which no such character stands as it is either. */
export const jsonLine = (value: unknown): string => escapeControls(JSON.stringify(value));

/** A table for people: what stands under each header. The last column may be long. */
type Columns<Row> = Readonly<Record<string, (row: Row) => string>>;

/** How a command answers on standard output. With `--json` nothing but JSON stands there. */
export interface Output {
  /** The whole result: one JSON document, or lines for people. Once a command. */
  show(data: object, ...lines: readonly string[]): void;
  /** The whole result where it is a list: a JSON array, or a table with headers. */
  table<Row extends object>(rows: readonly Row[], columns: Columns<Row>): void;
  /** One of a stream of results: a JSON line, for people too. */
  stream(data: object): void;
}

/** Aligned columns with two spaces between them. */
function tableLines<Row>(rows: readonly Row[], columns: Columns<Row>): string[] {
  const of = Object.entries(columns);
  const cells = [
    of.map(([header]) => header),
    ...rows.map((row) => of.map(([, cell]) => cell(row))),
  ].map((line) => line.map(escapeControls));
  const widths = of.map((_, column) => Math.max(...cells.map((line) => line[column]!.length)));
  return cells.map((line) =>
    line
      .map((cell, column) => cell.padEnd(widths[column]!))
      .join('  ')
      .trimEnd(),
  );
}

/** Writes results as JSON, or as text in which no stored text can do anything to a terminal. */
export function createOutput(json: boolean, write: (text: string) => void): Output {
  const print = (lines: readonly string[]): void =>
    lines.forEach((line) => write(`${escapeControls(line)}\n`));
  const document = (data: object): void => write(`${jsonLine(data)}\n`);
  return {
    show: (data, ...lines) => (json ? document(data) : print(lines)),
    table: (rows, columns) => (json ? document(rows) : print(tableLines(rows, columns))),
    stream: document,
  };
}
