/** A fenced block of a page, and what it prints where a block of the language `output` follows it. */
export interface CodeBlock {
  language: string;
  text: string;
  output: string | undefined;
}

/** The fenced blocks of a page, in order; those of `output` belong to the one before. */
export function codeBlocks(page: string): CodeBlock[] {
  const blocks: CodeBlock[] = [];
  for (const [, indent, language, body] of page.matchAll(/^( *)```(\w*)\n([^]*?)^ *```$/gm)) {
    const text = body!.replaceAll(new RegExp(`^${indent}`, 'gm'), '');
    if (language === 'output') blocks.at(-1)!.output = text;
    else blocks.push({ language: language!, text, output: undefined });
  }
  return blocks;
}

/** The commands of a page that are to be run: its blocks of the language `sh`. */
export const commandsOf = (page: string): CodeBlock[] =>
  codeBlocks(page).filter(({ language }) => language === 'sh');

/** Without npm's lines and progress; with `#` for ids, hashes, times and durations. */
const withoutVariable = (text: string): string =>
  text
    .replaceAll('\r', '')
    .replaceAll(
      /^(?:> .*|\d+ events(?: and \d+ leaves)? \w+(?:, \S+)?|Files restored: \d+)\n/gm,
      '',
    )
    .replaceAll(
      /[0-9a-f]{8}-[-0-9a-f]{27}|\b[0-9a-f]{64}\b|(?<=_)[0-9a-z]{26}|\d{4}-\d\d-\d\d(T[\d:.]+Z)?/g,
      '#',
    )
    .replaceAll(/(_ms": ?)\d+/g, '$1#')
    .trim();

/** Whether a printed text has the shape of a documented one, in which `…` stands for any text. */
export function hasShape(printed: string, documented: string): boolean {
  const parts = withoutVariable(documented)
    .split('…')
    .map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${parts.join('[^]*?')}$`).test(withoutVariable(printed));
}
