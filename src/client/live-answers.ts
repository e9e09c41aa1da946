/** From an answerer to a handler of the engine, and to the answer of a delivery. */
import type { Engine } from '../engine/engine.ts'
import type { Exchange } from '../engine/exchange.ts'
import { failureOf } from '../engine/outcome.ts'
import type { Side } from '../engine/plan.ts'
import type { AnswerContext, Answerer } from '../features/live/answers/messages.ts'
import { liveErrors } from '../features/live/feature-sets/messages.ts'
import { inferenceChunk } from '../features/live/inference/messages.ts'
import type { WireAnswer, WireDelivery } from '../features/live/listen/messages.ts'
import { McpError } from '../jsonrpc/error.ts'
import { clip } from '../jsonrpc/limits.ts'
import type { Awaitable, Params } from '../jsonrpc/message.ts'

/** Runs an answerer when its time has come: at once, or when the server knows what was selected. */
type Admit = (answerer: Answerer, params: Params, asked: AnswerContext) => Awaitable<unknown>

export function answeringHandlers(
  answerers: readonly Answerer[],
  admit: Admit,
  offered: () => boolean,
): NonNullable<Side['handlers']> {
  return answerers.map(answerer => [
    answerer.method,
    { offered, execute: (exchange: Exchange) => admit(answerer, exchange.params, asking(exchange)) },
  ])
}

function asking(exchange: Exchange): AnswerContext {
  return {
    get signal() {
      return exchange.signal
    },
    chunk: async (index, delta) => {
      const { engine, conversation, id, answered } = exchange
      // Echoed with its JSON type: ids count per direction, and "7" is not 7.
      if (id !== undefined && !answered) await engine.tell(conversation, inferenceChunk, { requestId: id, index, delta })
    },
  }
}

/** What answers deliveries: by the name of the method, for those that want an answer and for those that want none. */
export class DeliveryDesk {
  readonly #asked = new Map<string, Answerer>()
  readonly #told = new Map<string, Answerer>()
  readonly #admit: Admit
  readonly #refused: (method: string, params: unknown, error: unknown) => void

  constructor(
    answerers: readonly Answerer[],
    admit: Admit,
    refused: (method: string, params: unknown, error: unknown) => void = () => {},
  ) {
    this.#admit = admit
    this.#refused = refused
    for (const answerer of answerers) {
      const table = answerer.method.kind === 'request' ? this.#asked : this.#told
      table.set(answerer.method.name, answerer)
    }
  }

  /** Throws what it is to be refused with. */
  async answer({ method, params, answer }: WireDelivery, asked: AnswerContext): Promise<unknown> {
    const answerer = (answer ? this.#asked : this.#told).get(method)
    if (answerer === undefined) throw new McpError('method-not-found', `There is no method "${clip(method)}" here`)
    const fault = answerer.method.params.check(params)
    if (fault !== undefined) {
      const where = fault.path === '' ? 'params' : `params.${clip(fault.path)}`
      const error = new McpError('invalid-params', `${where} must be ${fault.expected}`)
      this.#refused(method, params, error)
      throw error
    }
    return this.#admit(answerer, params, asked)
  }
}

/** Numbers as MCP Live has them: inside an answer they meet no others. */
export function errorIn(engine: Engine, thrown: unknown): NonNullable<WireAnswer['error']> {
  const failure = failureOf(thrown)
  if (failure.kind === 'internal') engine.trace('internal', failure.cause ?? failure)
  const own = new Map(Object.entries(liveErrors)).get(failure.kind)
  const code = own?.default ?? engine.outcome.number(failure, engine.fallback)
  return { code, message: failure.message, ...(failure.data === undefined ? {} : { data: failure.data }) }
}
