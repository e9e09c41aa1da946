/** In which step of a unit of work a handler runs, for what it calls without saying so: `emit`. Loaded with the first step. */
import type { AsyncLocalStorage } from 'node:async_hooks'
import type { Trace } from '../core/log-trace.ts'
import type { UnitStep } from '../engine/exchange.ts'
import type { Steps } from '../features/reliability/events/server.ts'

export function lazySteps(trace: Trace): Steps {
  let storage: AsyncLocalStorage<UnitStep | undefined> | undefined
  let loaded = false
  const load = (): void => {
    loaded = true
    const hooks = globalThis.process?.getBuiltinModule?.('node:async_hooks')
    if (hooks !== undefined) storage = new hooks.AsyncLocalStorage()
    // Elsewhere than on Node, Deno and Bun there may be none; the call is none the worse for it.
    else trace('steps-untold', { hint: 'What a rollback takes back, its events do not tell here' })
  }
  return {
    current: () => storage?.getStore(),
    within: async (step, work) => {
      if (!loaded) load()
      return storage === undefined ? work() : storage.run(step, work)
    },
  }
}
