/** Every text that the component shows, in English. A page replaces any of them by `texts`. */
export const TEXTS = {
  heading: 'Chat',
  label: 'Message',
  placeholder: 'Write a message…',
  send: 'Send',
  stop: 'Stop',
  restart: 'New chat',
  retry: 'Try again',
  latest: 'Go to the latest message',
  empty: 'Write a message to begin.',
  you: 'You',
  agent: 'Assistant',
  working: 'The answer is being written.',
  done: 'The answer is complete.',
  stopped: 'Stopped.',
  interrupted: 'The answer was interrupted.',
  reconnecting: 'The connection was lost. Reconnecting…',
  tool: 'Used {tool}',
  toolFailed: '{tool} failed',
  toolArguments: 'Input',
  toolResult: 'Result',
  earlier: 'Earlier messages are not shown.',
  network: 'The chat could not be reached. Check your connection, then try again.',
  token: 'The chat could not be opened. Reload the page, and sign in again if you are signed out.',
  busy: 'The chat is busy. Wait a moment, then try again.',
  tooLong: 'The message is too long. Shorten it, then send it again.',
  failed: 'The answer failed. Try again, or ask in another way.',
  misconfigured: 'The chat is not set up correctly. Tell the owner of this page: {reason}',
};

export type Texts = typeof TEXTS;

/** A text with its placeholder filled in. */
export const fill = (text: string, name: string, value: string): string =>
  text.replace(`{${name}}`, () => value);
