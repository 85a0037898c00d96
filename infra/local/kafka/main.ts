/**
 * `npm run kafka`: a local broker for experiments, in `data/kafka`, on port 9092 or the given one,
 * until Ctrl-C.
 */
import { createLocalBroker } from './localBroker.ts';

const broker = await createLocalBroker({
  folder: 'data/kafka',
  port: Number(process.argv[2] ?? 9092),
});
await broker.start();
process.stdout.write(`Kafka ${broker.version} listens on ${broker.brokers}\n`);
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void broker.stop());
