import type { ServerResponse } from 'node:http';

const HINTS = 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'.repeat(100);

/** Sends informational responses as fast as they are read, until the connection is closed. */
export function sendHints({ socket }: ServerResponse): void {
  const send = (): void => {
    while (socket!.writable && socket!.write(HINTS));
  };
  socket!.on('error', () => undefined).on('drain', send);
  send();
}
