import type { Message, TopicMessages } from 'kafkajs';

/**
 * Below the 1 MiB that a broker takes in one batch of a partition by default; kafkajs makes one
 * batch of all that a send has for a partition.
 */
const MAX_SEND_BYTES = 768 * 1024;
/** What a message needs beside its value: headers, key, framing. */
const OVERHEAD_BYTES = 1024;

interface Addressed {
  topic: string;
  message: Message & { value: string };
}

/** Groups messages by topic, each topic's in order. */
function byTopic(messages: readonly Addressed[]): TopicMessages[] {
  const topics = new Map<string, Message[]>();
  for (const { topic, message } of messages) {
    const list = topics.get(topic);
    if (list) list.push(message);
    else topics.set(topic, [message]);
  }
  return [...topics].map(([topic, list]) => ({ topic, messages: list }));
}

/**
 * Cuts messages into sends that a broker takes, in order; a message that is larger than that goes
 * alone.
 */
export function intoSends(messages: readonly Addressed[]): TopicMessages[][] {
  const sends: TopicMessages[][] = [];
  let current: Addressed[] = [];
  let bytes = 0;
  for (const addressed of messages) {
    const size = Buffer.byteLength(addressed.message.value) + OVERHEAD_BYTES;
    if (current.length > 0 && bytes + size > MAX_SEND_BYTES) {
      sends.push(byTopic(current));
      current = [];
      bytes = 0;
    }
    current.push(addressed);
    bytes += size;
  }
  if (current.length > 0) sends.push(byTopic(current));
  return sends;
}
