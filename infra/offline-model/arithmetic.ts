/** Not after a letter: what follows a function's name is not the whole expression. */
const SUM = /(?<![\w.])[-(\d.][-\d.+*/^%() ]*[\d)]/g;
/** A number, an operator, a number, whatever parentheses and signs stand between. */
const OPERATION = /\d[ )]*[+\-*/^%][ (+-]*[\d.]/;
/** Such as 2026-11-20, 24/7/365 or 555-0199: written without spaces, these are no sums. */
const DATE_OR_NUMBER =
  /^\d{4}[-/]\d{1,2}[-/]\d{1,2}$|^\d{1,2}\/\d{1,2}\/\d{2,4}$|^\d{3,}-\d{3,}(-\d+)*$/;

function balanced(text: string): boolean {
  let open = 0;
  for (const character of text) {
    if (character === '(') open += 1;
    if (character === ')') open -= 1;
    if (open < 0) return false;
  }
  return open === 0;
}

/**
 * The first arithmetic expression with an operator in a text, such as `12*34` in "What is 12*34?";
 * undefined when there is none. Meant for short texts: its time grows with the square of the
 * length.
 */
export function findExpression(text: string): string | undefined {
  const candidates = [...text.matchAll(SUM)].map(([match]) => match.trim());
  return candidates.find(
    (candidate) =>
      OPERATION.test(candidate) && !DATE_OR_NUMBER.test(candidate) && balanced(candidate),
  );
}
