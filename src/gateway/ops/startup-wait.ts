/**
 * The start of a gateway: until all upstreams were listed once, lists and calls of unknown names wait, so that the first answers are
 * complete. After that its layer is removed from the plan and costs nothing.
 */
import type { Cancel, Clock } from '../../core/clock.ts'
import type { Engine } from '../../engine/engine.ts'
import type { Exchange } from '../../engine/exchange.ts'
import type { Layer } from '../../engine/stages.ts'

interface FirstLookParts {
  readonly engine: Engine
  readonly clock: Clock
  /** The longest wait. */
  readonly waitMs: number
  /** Whether clients see something under this name or address. */
  knows(kind: 'tool' | 'prompt' | 'resource', name: string): boolean
}

/** Methods whose answer depends on all lists. */
const listing = ['server/discover', 'tools/list', 'prompts/list', 'resources/list', 'resources/templates/list']
/** Methods that use one entry. */
const using = ['tools/call', 'prompts/get', 'resources/read', 'resources/subscribe', 'completion/complete']

/** Holds back lists and calls of unknown names until all upstreams were listed once, or the wait is over. */
export class StartupWait {
  readonly #parts: FirstLookParts
  readonly #ended = Promise.withResolvers<void>()
  readonly #timer: Cancel
  /** Requests no longer wait. */
  over = false

  constructor(parts: FirstLookParts) {
    this.#parts = parts
    this.#timer = parts.clock.setTimeout(() => this.finish(), parts.waitMs, true)
    const layers = [this.#layer()]
    // A getter, so that `replan` finds no layer once the wait is over.
    const current = (): readonly Layer[] => (this.over ? [] : layers)
    parts.engine.extend({
      get layers() {
        return current()
      },
    })
  }

  /** Lets all waiting requests through: each upstream was listed or failed once. */
  finish(): void {
    if (this.over) return
    this.over = true
    this.#timer()
    this.#parts.engine.replan()
    this.#ended.resolve()
  }

  #layer(): Layer {
    return {
      stage: 'enter',
      methods: [...listing, ...using],
      when: exchange => !this.over && this.#isEarly(exchange),
      run: (_, next) => this.#ended.promise.then(next),
    }
  }

  /** Lists always wait; a call waits only where its name is unknown. */
  #isEarly({ route, params }: Exchange): boolean {
    const { knows } = this.#parts
    const said = (name: string): string => String(params[name])
    switch (route.method.name) {
      case 'tools/call':
        return !knows('tool', said('name'))
      case 'prompts/get':
        return !knows('prompt', said('name'))
      case 'resources/read':
      case 'resources/subscribe':
        return !knows('resource', said('uri'))
      default:
        return true
    }
  }
}
