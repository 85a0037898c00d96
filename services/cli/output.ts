import { escapeControls } from '../../shared/lib/terminal.ts';

/** JSON on one line, with the same characters escaped. */
export const jsonLine = (value: unknown): string => escapeControls(JSON.stringify(value));

/** The columns of a table by their headers. The last column may be long. */
type Columns<Row> = Readonly<Record<string, (row: Row) => string>>;

/** The results of a command on standard output; with `--json`, only JSON. */
export interface Output {
  /** Writes the whole result, once per command: one JSON document, or lines of text. */
  show(data: object, ...lines: readonly string[]): void;
  /** Writes a result that is a list: a JSON array, or a table with headers. */
  table<Row extends object>(rows: readonly Row[], columns: Columns<Row>): void;
  /** Writes one of a stream of results, always as a JSON line. */
  stream(data: object): void;
}

/** Aligned columns with two spaces between them. */
function tableLines<Row>(rows: readonly Row[], columns: Columns<Row>): string[] {
  const entries = Object.entries(columns);
  const cells = [
    entries.map(([header]) => header),
    ...rows.map((row) => entries.map(([, cell]) => cell(row))),
  ].map((line) => line.map(escapeControls));
  const widths = entries.map((_, column) => Math.max(...cells.map((line) => line[column]!.length)));
  return cells.map((line) =>
    line
      .map((cell, column) => cell.padEnd(widths[column]!))
      .join('  ')
      .trimEnd(),
  );
}

/** Writes results as JSON or as text; stored texts can't control the terminal. */
export function createOutput(json: boolean, write: (text: string) => void): Output {
  const print = (lines: readonly string[]): void =>
    write(lines.map((line) => `${escapeControls(line)}\n`).join(''));
  const document = (data: object): void => write(`${jsonLine(data)}\n`);
  return {
    show: (data, ...lines) => (json ? document(data) : print(lines)),
    table: (rows, columns) => (json ? document(rows) : print(tableLines(rows, columns))),
    stream: document,
  };
}
