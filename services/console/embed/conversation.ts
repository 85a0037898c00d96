import type { RecordedTurn, ToolCall } from './chatApi.ts';
import { element, hiddenText } from './dom.ts';
import { createMarkdownView } from './markdown.ts';
import { fill, type Texts } from './texts.ts';

/** Within this distance of its end, the log follows what is written. */
const NEAR_END_PX = 48;

/** JSON is indented; other text stays as it is. */
function readable(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

const definition = (term: string, text: string): HTMLElement[] => [
  element('dt', {}, term),
  element('dd', {}, element('pre', { tabindex: '0' }, readable(text))),
];

function toolCallElement(call: ToolCall, texts: Texts): HTMLElement {
  const title = fill(call.is_error ? texts.toolFailed : texts.tool, 'tool', call.tool);
  return element(
    'details',
    { class: call.is_error ? 'tool failed' : 'tool', part: 'tool' },
    element('summary', {}, title),
    element(
      'dl',
      {},
      ...definition(texts.toolArguments, call.arguments),
      ...definition(texts.toolResult, call.result),
    ),
  );
}

/** One input and its answer while it is written. */
export interface TurnView {
  addText(round: number, text: string): void;
  addToolCall(call: ToolCall): void;
  /** The whole output, where it differs from the text so far. */
  complete(output: string | null): void;
  /** Ends the turn with a note instead of an answer, and a button where it can be tried again. */
  fail(note: string, retry?: () => void): void;
  remove(): void;
}

/** The messages of a session in an element that scrolls. */
export interface Conversation {
  log: HTMLElement;
  begin(input: string): TurnView;
  addRecorded(turn: RecordedTurn): void;
  /** Shows a note below the messages; undefined removes it. */
  setNote(note: string | undefined, retry?: () => void): void;
  clear(): void;
}

export function createConversation(texts: Texts, toLatest: HTMLButtonElement): Conversation {
  const list = element('ol', {});
  const note = element('div', { class: 'note', part: 'note' });
  const log = element(
    'div',
    { class: 'log', part: 'log', role: 'log', tabindex: '0', 'aria-label': texts.heading },
    list,
    note,
  );
  let isAtEnd = true;

  const updateButton = (): void => {
    toLatest.hidden = isAtEnd;
  };
  const scrollToEnd = (): void => {
    log.scrollTop = log.scrollHeight;
  };
  log.addEventListener('scroll', () => {
    isAtEnd = log.scrollHeight - log.scrollTop - log.clientHeight < NEAR_END_PX;
    updateButton();
  });
  toLatest.addEventListener('click', () => {
    isAtEnd = true;
    scrollToEnd();
    updateButton();
    log.focus();
  });
  /** Follows the end only for a reader who is there. */
  function changed(): void {
    if (isAtEnd) scrollToEnd();
    else updateButton();
  }
  new ResizeObserver(changed).observe(log);

  const noteElements = (text: string, retry: (() => void) | undefined): HTMLElement[] => {
    const message = element('p', {}, text);
    if (!retry) return [message];
    const button = element('button', { type: 'button', part: 'button' }, texts.retry);
    button.addEventListener('click', retry);
    return [message, button];
  };

  function begin(input: string): TurnView {
    const question = element(
      'li',
      { class: 'user', part: 'message user-message' },
      hiddenText(`${texts.you}: `),
      element('p', {}, input),
    );
    const content = element('div', { class: 'content' });
    const pending = element('p', { class: 'pending', 'aria-hidden': 'true' });
    const answer = element(
      'li',
      // A screen reader reads an answer once it is complete.
      { class: 'agent', part: 'message agent-message', 'aria-busy': 'true' },
      hiddenText(`${texts.agent}: `),
      content,
      pending,
    );
    list.append(question, answer);
    isAtEnd = true;
    changed();

    let round: { number: number; text: string; show: (text: string) => void } | undefined;
    let frame: number | undefined;

    function startRound(number: number): NonNullable<typeof round> {
      const block = element('div', { class: 'markdown' });
      content.append(block);
      return { number, text: '', show: createMarkdownView(block) };
    }
    function draw(): void {
      if (frame !== undefined) cancelAnimationFrame(frame);
      frame = undefined;
      round?.show(round.text);
      changed();
    }
    function end(): void {
      draw();
      pending.remove();
      answer.setAttribute('aria-busy', 'false');
    }

    return {
      addText(number, text) {
        if (round?.number !== number) {
          draw();
          round = startRound(number);
        }
        round.text += text;
        // At most once per frame, however many parts arrive.
        frame ??= requestAnimationFrame(draw);
      },
      addToolCall(call) {
        draw();
        round = undefined;
        content.append(toolCallElement(call, texts));
        changed();
      },
      complete(output) {
        if (output !== null && output !== (round?.text ?? '')) {
          round ??= startRound(0);
          round.text = output;
        }
        end();
      },
      fail(text, retry) {
        end();
        answer.append(element('div', { class: 'note' }, ...noteElements(text, retry)));
        changed();
      },
      remove() {
        question.remove();
        answer.remove();
      },
    };
  }

  return {
    log,
    begin,
    addRecorded({ input, output, tool_calls, status, error }) {
      const view = begin(input);
      for (const call of tool_calls) view.addToolCall(call);
      if (status === 'completed') view.complete(output);
      else if (status === 'failed') view.fail(texts.failed);
      else view.fail(error?.reason === 'cancelled' ? texts.stopped : texts.interrupted);
    },
    setNote(text, retry) {
      note.replaceChildren(...(text === undefined ? [] : noteElements(text, retry)));
      changed();
    },
    clear: () => list.replaceChildren(),
  };
}
