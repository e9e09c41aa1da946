/** In which step of a unit of work a handler runs, for what it calls without saying so: `emit`. Loaded with the first step. */
import type { AsyncLocalStorage } from 'node:async_hooks'
import type { Trace } from '../core/log-trace.ts'
import type { UnitStep } from '../engine/exchange.ts'
import type { Steps } from '../features/reliability/events/server.ts'

export function lazySteps(trace: Trace): Steps {
  let storage: AsyncLocalStorage<UnitStep | undefined> | undefined
  let loading: Promise<void> | undefined
  const load = (): Promise<void> => {
    loading ??= import('node:async_hooks').then(
      hooks => {
        storage = new hooks.AsyncLocalStorage()
      },
      // Elsewhere than on Node, Deno and Bun there may be none; the call is none the worse for it.
      error => trace('steps-untold', { hint: 'What a rollback takes back, its events do not tell here', error }),
    )
    return loading
  }
  return {
    current: () => storage?.getStore(),
    within: async (step, work) => {
      await load()
      return storage === undefined ? work() : storage.run(step, work)
    },
  }
}
