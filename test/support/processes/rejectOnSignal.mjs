/** Preloaded into a service under test: at SIGUSR2 a promise rejects that nobody awaits. */
import { isMainThread } from 'node:worker_threads';

if (isMainThread) {
  process.on('SIGUSR2', () => {
    void Promise.reject(new Error('nobody awaits this', { cause: new Error('its cause') }));
  });
}
