import { expect, test } from '@jest/globals';
import { createOfflineModel } from '../../../../infra/offline-model/server.ts';
import { isFreed } from '../../../support/jest/garbage.ts';

const parse = JSON.parse;

test.each([false, true])('keeps no parsed request while it pauses (stream: %s)', async (stream) => {
  let parsed: WeakRef<object> | undefined;
  JSON.parse = (text: string) => {
    const value = parse(text) as object;
    if ('messages' in value) parsed = new WeakRef(value);
    return value;
  };
  const freed = Promise.withResolvers<boolean>();
  const model = createOfflineModel(async () => {
    freed.resolve(await isFreed(parsed!));
  });
  const connection = model.connect();
  const schema = { examples: Array.from({ length: 1_000 }, () => ({})) };
  const response_format = { type: 'json_schema', json_schema: { name: 'n', schema } };
  const messages = [{ role: 'user', content: '/slow Hello' }];
  const body = JSON.stringify({ model: 'offline-echo', messages, response_format, stream });
  connection.write(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  try {
    expect(await freed.promise).toBe(true);
  } finally {
    JSON.parse = parse;
    connection.destroy();
  }
});
