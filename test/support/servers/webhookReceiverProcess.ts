/**
 * A receiver of webhooks as a process of its own: it writes each message into a file before it takes
 * it. Its arguments are the port and the file.
 */
import { appendFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';

const [port, file] = process.argv.slice(2) as [string, string];

async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = await text(request);
  appendFileSync(file, `${JSON.stringify({ headers: request.headers, text: body })}\n`);
  await sleep(Math.random() * 20);
  response.writeHead(204).end();
}

createServer((request, response) => {
  // Whoever sends may be killed.
  take(request, response).catch(() => response.destroy());
}).listen(Number(port), '127.0.0.1');
