/**
 * The time between the start of a gateway and its first look at all servers: what is listed then, or called by a name that nobody knows
 * yet, waits for it, so that also the first answer is right. It ends by itself; from then on nothing of it stands in the way of a call.
 */
import type { Cancel, Clock } from '../../core/clock.ts'
import type { Engine } from '../../engine/engine.ts'
import type { Exchange } from '../../engine/exchange.ts'
import type { Layer } from '../../engine/stages.ts'

interface FirstLookParts {
  readonly engine: Engine
  readonly clock: Clock
  /** How long it may take until nobody waits for it any more. */
  readonly waitMs: number
  /** Whether clients see something of this name, or address. */
  knows(kind: 'tool' | 'prompt' | 'resource', name: string): boolean
}

/** Lists, and what says which there are. */
const listing = ['server/discover', 'tools/list', 'prompts/list', 'resources/list', 'resources/templates/list']
const using = ['tools/call', 'prompts/get', 'resources/read', 'resources/subscribe', 'completion/complete']

/** Holds back lists and calls of unknown names until all servers were listed once, or the wait is over. */
export class FirstLook {
  readonly #parts: FirstLookParts
  readonly #ended = Promise.withResolvers<void>()
  readonly #timer: Cancel
  /** Nobody waits for it any more. */
  #over = false

  constructor(parts: FirstLookParts) {
    this.#parts = parts
    this.#timer = parts.clock.setTimeout(() => this.#end(), parts.waitMs, true)
    const layers = [this.#layer()]
    const current = (): readonly Layer[] => (this.#over ? [] : layers)
    parts.engine.extend({
      get layers() {
        return current()
      },
    })
  }

  get over(): boolean {
    return this.#over
  }

  /** Each server came up once and was listed, or failed once. */
  finish(): void {
    this.#end()
  }

  #end(): void {
    if (this.#over) return
    this.#over = true
    this.#timer()
    this.#parts.engine.replan()
    this.#ended.resolve()
  }

  #layer(): Layer {
    return {
      stage: 'enter',
      methods: [...listing, ...using],
      when: exchange => !this.#over && this.#isEarly(exchange),
      run: (_, next) => this.#ended.promise.then(next),
    }
  }

  /** Lists are always early; a call only where nobody knows its name yet. */
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
