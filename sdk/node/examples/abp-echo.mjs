#!/usr/bin/env node
// The smallest useful sidecar: says the task back, word by word, and counts what it said.
import { serve } from '../abp.mjs';

await serve({ id: 'echo', backend_version: '1.0.0', capabilities: { streaming: 'native' } }, async run => {
  await run.started(`${run.order.task.length} characters to say`);
  const words = run.order.task.split(/\s+/).filter(Boolean);
  for (const word of words) {
    run.signal.throwIfAborted();
    await run.delta(`${word} `);
  }
  await run.usage({ output_tokens: words.length, turns: 1 });
  await run.message(words.join(' '));
  await run.completed('everything was said');
});
