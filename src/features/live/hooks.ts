/** Which hooks are at work: nothing may be inferred on their way (MCP Live 0.2 §10.7), so what wants to waits until they are done. */
import type { Clock } from '../../core/clock.ts'
import { type Problem, problem } from '../../core/problem.ts'

interface HookWatch {
  /** `of`: whose hook it is. */
  during<T>(of: object, run: () => Promise<T>): Promise<T>
  /** Resolves when no hook of theirs is at work; rejects where the caller itself is one and waits for what it asks. */
  free(of: object): Promise<void>
}

/** A hook that still works after this, and wanted to infer something, waits for it. */
const patienceMs = 2_000

interface Running {
  active: boolean
}

type Local = { run<T>(store: Running, fn: () => T): T; getStore(): Running | undefined }

export function hookWatch(clock: Clock): HookWatch {
  const local = follower()
  const working = new Map<object, { count: number; readonly waiting: Set<() => void> }>()
  return {
    during: async (of, run) => {
      const at = working.get(of) ?? { count: 0, waiting: new Set() }
      working.set(of, at)
      at.count++
      const running = { active: true }
      try {
        return await (local === undefined ? run() : local.run(running, run))
      } finally {
        running.active = false
        if (--at.count === 0) {
          working.delete(of)
          // The answer goes out first.
          clock.setTimeout(() => {
            for (const fn of at.waiting) fn()
          }, 0)
        }
      }
    },
    free: async of => {
      const inside = local?.getStore()
      for (let at = working.get(of); at !== undefined; at = working.get(of)) {
        const { waiting } = at
        await new Promise<void>((resolve, reject) => {
          const late = (): void => {
            if (inside?.active === true) reject(onTheWay())
          }
          const stop = inside === undefined ? undefined : clock.setTimeout(late, patienceMs, true)
          waiting.add(() => {
            stop?.()
            resolve()
          })
        })
      }
    },
  }
}

/** What runs on behalf of what, on runtimes that can tell. */
function follower(): Local | undefined {
  const hooks = globalThis.process?.getBuiltinModule?.('node:async_hooks')
  return hooks === undefined ? undefined : new hooks.AsyncLocalStorage<Running>()
}

function onTheWay(): Problem {
  return problem('INFERENCE_IN_HOOK', 'A hook waits for an inference, which must not run before the hook has answered', {
    suggestion: 'Start it without awaiting it, and use what comes of it in a later turn',
    actor: 'operator',
  })
}
