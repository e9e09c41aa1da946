/**
 * Server side of streaming: tools with generator handlers, `ctx.progress`, and the option `streaming`. A lost call can be resumed. The
 * runtime is loaded with the first chunk.
 */
import { type Clock, type Duration, toMilliseconds } from '../../../core/clock.ts'
import type { Progress } from '../../../engine/calls.ts'
import { type CallContext, exchangeOf } from '../../../engine/context.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { declaredSettings, extensionCapability } from '../../../engine/extensions.ts'
import type { Side } from '../../../engine/plan.ts'
import { port } from '../../../engine/ports.ts'
import { defineServerFeature, provide, type ServerKit } from '../../../engine/server-feature.ts'
import { given } from '../../../jsonrpc/message.ts'
import { type ProgressPort, progressPort } from '../../mcp/progress/messages.ts'
import { ratesPort } from '../../mcp/rates/messages.ts'
import { callTool, toolsPort } from '../../mcp/tools/messages.ts'
import { streamingExtension, type WireProgress } from './messages.ts'
import type { StreamingRuntime } from './runtime.ts'

/** Options of streaming. */
export interface StreamingOptions {
  /** How long a call continues after its caller was disconnected, before it is cancelled. Default 30 s. */
  readonly grace?: Duration
  /** How long the result of a call can still be fetched after it has ended. Default 5 minutes. */
  readonly keep?: Duration
  /** The most characters of chunks that are kept per call for callers that reconnect. Default 4 Mi. */
  readonly length?: number
  /** The most calls that can be resumed at the same time; further calls stream too, but end with their connection. Default 1,000. */
  readonly operations?: number
}

/** Options of `createServer` for streaming. */
export interface StreamingServerOptions {
  /** How calls of streaming tools are kept for callers that were disconnected. */
  readonly streaming?: StreamingOptions
}

/** The progress of a call. */
interface ProgressStep extends Progress {
  /** The remaining time. Default: estimated from the progress so far, if the total is known. */
  readonly remaining?: Duration
  /** The partial result so far. Default: none. */
  readonly partial?: Readonly<Record<string, unknown>>
}

/** The progress of a call. */
export interface ProgressContext {
  /**
   * Sends a progress notification to the client, if it asked for them. `progress` must increase with each call.
   * @example ctx.progress(3, { total: 10, message: 'Reading the files' })
   */
  progress(progress: number, more?: Omit<ProgressStep, 'progress'>): void
}

/** Tells how far a call has come. */
const streamingPort = port<{ progress(exchange: Exchange, step: ProgressStep): void }>('streaming')

/** Tools whose handlers are generators; `ctx.progress`. */
export const streamingFeature = defineServerFeature<StreamingServerOptions>({
  name: 'streaming',
  options: { streaming: 'object' },
  context: {
    progress(progress, more = {}) {
      const exchange = exchangeOf(this)
      exchange.engine.ports.get(streamingPort).progress(exchange, { progress, ...more })
    },
  } satisfies ProgressContext & ThisType<CallContext>,
  setup: (kit, { streaming = {} }) => {
    const tools = kit.port(toolsPort)
    const tell = kit.port(progressPort)
    const graceMs = toMilliseconds(streaming.grace ?? '30s', 'streaming.grace')
    const keepMs = toMilliseconds(streaming.keep ?? '5m', 'streaming.keep')
    const readers: StreamingParts['readers'] = new WeakMap()
    const pace = paceOf(kit.clock)
    let loading: Promise<StreamingRuntime> | undefined
    const load = (): Promise<StreamingRuntime> => {
      loading ??= import('./runtime.ts').then(
        ({ StreamingRuntime }) => new StreamingRuntime({ ...kit, ...streaming, tell, graceMs, keepMs, readers }),
      )
      return loading
    }
    const used = (): boolean => tools.some('streaming tools', ({ streams }) => streams)
    const streams = ({ params }: Exchange): boolean => used() && tools.catalog.get(params['name'] as string)?.streams === true
    const side: Side = {
      layers: [
        {
          stage: 'replay',
          methods: [callTool.name],
          marked: true,
          concerns: streams,
          when: exchange => {
            const { meta } = exchange
            return (meta !== undefined && Object.hasOwn(meta, streamingExtension)) || streams(exchange)
          },
          run: async (exchange, next) => (await load()).run(exchange, next),
        },
      ],
      capabilities: revision => (used() ? extensionCapability(revision, streamingExtension) : {}),
    }
    tools.extend({
      stream: async (exchange, generator) => (await load()).stream(exchange, generator),
      meta: (_name, _facts, _schemas, streams) => (streams ? { [streamingExtension]: { supports_streaming: true } } : undefined),
    })
    const progress = (exchange: Exchange, { remaining, partial, ...step }: ProgressStep): void => {
      const reader = readers.get(exchange)?.() ?? exchange
      const allow = (): boolean => kit.port(ratesPort).progress(exchange)
      if (declaredSettings(reader.peer, streamingExtension) === undefined) return void tell.progress(reader, step, allow)
      const left = remaining === undefined ? pace(exchange, step) : toMilliseconds(remaining, 'remaining')
      tell.progress(reader, step, allow, () => ({ [streamingExtension]: wireProgress(exchange, step, left, partial) }))
    }
    return { sides: [side], provides: provide(streamingPort, { progress }), close: async () => (await loading)?.close() }
  },
})

/** What the runtime of streaming is made of. */
export interface StreamingParts extends ServerKit, StreamingOptions {
  readonly tell: ProgressPort
  readonly graceMs: number
  readonly keepMs: number
  /** Who hears now what a call says: another one, where its caller was cut off and has come back. */
  readonly readers: WeakMap<Exchange, () => Exchange | undefined>
}

function wireProgress(
  exchange: Exchange,
  { progress, total, message }: Progress,
  leftMs: number | undefined,
  partial: Readonly<Record<string, unknown>> | undefined,
): WireProgress {
  const known = total !== undefined && Number.isFinite(total) && total > 0
  return {
    type: 'progress',
    operation_id: operationId(exchange),
    ...given({
      progress: known ? Math.min(1, Math.max(0, progress / total)) : undefined,
      message,
      estimated_remaining_seconds: leftMs === undefined ? undefined : Math.ceil(leftMs / 100) / 10,
      partial_result: partial,
    }),
  }
}

/** How long it will still take if it goes on as it went, in milliseconds; undefined where that cannot be said. */
function paceOf(clock: Clock): (exchange: Exchange, step: Progress) => number | undefined {
  const begun = new WeakMap<Exchange, { readonly at: number; readonly progress: number }>()
  return (exchange, { progress, total }) => {
    if (total === undefined || !Number.isFinite(total)) return undefined
    const first = begun.get(exchange)
    if (first === undefined) {
      begun.set(exchange, { at: clock.now(), progress })
      return undefined
    }
    const done = progress - first.progress
    return done > 0 && total >= progress ? ((total - progress) / done) * (clock.now() - first.at) : undefined
  }
}

const ids = new WeakMap<Exchange, string>()

/** The name of the operation that a call is. */
export function operationId(exchange: Exchange): string {
  let id = ids.get(exchange)
  if (id === undefined) {
    id = crypto.randomUUID()
    ids.set(exchange, id)
  }
  return id
}

/** The call is made again: it goes on with that operation. */
export function nameOperation(exchange: Exchange, id: string): void {
  ids.set(exchange, id)
}
