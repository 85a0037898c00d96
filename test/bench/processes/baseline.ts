/**
 * What Turnlog is measured against: a bare Koa application that calls the model with the stock
 * `openai` client and stores nothing (POST /run), and that sends a list from a buffer (GET /list).
 * Arguments: the model's base URL, a file with the list.
 */
import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import Router from '@koa/router';
import Koa from 'koa';
import { OpenAI } from 'openai';

const [baseURL, listFile] = process.argv.slice(2);
const openai = new OpenAI({ baseURL: baseURL!, apiKey: 'none' });
const list = readFileSync(listFile!);

const router = new Router();
router.post('/run', async (ctx) => {
  const { input } = (await json(ctx.req)) as { input: string };
  const completion = await openai.chat.completions.create({
    model: 'bench',
    messages: [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: input },
    ],
  });
  ctx.body = {
    success: true,
    data: { output: completion.choices[0]!.message.content, tokens: completion.usage },
    status: 200,
  };
});
router.get('/list', (ctx) => {
  ctx.type = 'application/json; charset=utf-8';
  ctx.body = list;
});

const app = new Koa();
app.use(router.routes());
const server = app.listen(0, '127.0.0.1', () =>
  process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}\n`),
);
