/** The runtime of streaming: runs generators, stores what they yield, and resumes interrupted calls. Loaded with the first chunk. */

import { ownerKey } from '../../../core/accounts.ts'
import type { Clock } from '../../../core/clock.ts'
import { fingerprint } from '../../../core/digest.ts'
import { Problem, problem } from '../../../core/problem.ts'
import { addRetryState, type Exchange, retryState } from '../../../engine/exchange.ts'
import { declaredSettings } from '../../../engine/extensions.ts'
import { accountOf } from '../../../engine/owner.ts'
import type { Next } from '../../../engine/stages.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import type { ContentBlock } from '../../mcp/content/messages.ts'
import { isInputRequired } from '../../mcp/input-required/messages.ts'
import type { ProgressPort } from '../../mcp/progress/messages.ts'
import { type CallToolResult, toolsPort } from '../../mcp/tools/messages.ts'
import { Checkpoints, ChunkStore, checkpointNotFound, endedWith, give, waitForReaders } from './chunk-store.ts'
import { resumeIn, streamingExtension } from './messages.ts'
import { StreamOperation } from './operation.ts'
import { feedOf, followRemote, listenForRemote } from './remote-operations.ts'
import { nameOperation, operationId, type StreamingParts } from './server.ts'

/** Takes what a generator yields. */
interface Sink {
  chunk(data: unknown, length: number): Promise<void>
  end(): Promise<void>
}

const standardLength = 4 * 1024 * 1024
const messageLength = 1_000
/** How long those that run may take to note that the server is closing. */
const closeMs = 1_000

/** Streaming on a server, once it is used. */
export class StreamingRuntime {
  readonly #parts: StreamingParts
  readonly #checkpoints: Checkpoints
  /** What runs here, by its id. */
  readonly #operations = new Map<string, StreamOperation>()
  /** Calls whose end is seen here. */
  readonly #attended = new WeakSet<Exchange>()
  readonly #of = new WeakMap<Exchange, { readonly operation: StreamOperation; readonly account: string }>()
  #chunkStore: Promise<ChunkStore> | undefined = undefined

  constructor(parts: StreamingParts) {
    this.#parts = parts
    this.#checkpoints = new Checkpoints(parts)
  }

  /** Wraps calls of streaming tools, and calls that resume one. */
  async run(exchange: Exchange, next: Next): Promise<unknown> {
    const wanted = resumeIn(exchange.meta)
    if (wanted !== undefined) return this.#resume(exchange, wanted.operation_id, wanted.checkpoint_token)
    const before = exchange.get(retryState)?.[streamingExtension]
    if (before !== undefined) nameOperation(exchange, before)
    this.#attended.add(exchange)
    let result: unknown
    try {
      result = await next()
    } catch (error) {
      await this.#ended(exchange, undefined, error)
      throw error
    }
    await this.#ended(exchange, result as CallToolResult, undefined)
    return result
  }

  /** Runs a generator to its end: each yield is a chunk; gives what the result is made of. */
  async stream(exchange: Exchange, generator: AsyncGenerator): Promise<unknown> {
    const gathered = new ChunkCollector()
    let sink: Sink | undefined
    try {
      for (;;) {
        const { done, value } = await generator.next()
        if (done === true) {
          await sink?.end()
          return value === undefined ? gathered.result(this.#parts.port(toolsPort).reply) : value
        }
        const length = lengthOf(value)
        if (length === undefined) continue
        gathered.add(value, length)
        sink ??= await this.#sink(exchange)
        await sink.chunk(value, length)
      }
    } catch (error) {
      // Lets the generator clean up, without waiting for it.
      generator.return(undefined).catch(thrown => this.#parts.trace('generator-failed', thrown))
      if (!exchange.cancelled && exchange.asking?.pending !== true) await sink?.end()
      throw error
    }
  }

  async close(): Promise<void> {
    const running = [...this.#operations.values()]
    for (const operation of running) operation.stop('The server is closing')
    await within(this.#parts.clock, closeMs, Promise.all(running.map(({ over }) => over)))
    ;(await this.#chunkStore)?.close()
  }

  async #sink(exchange: Exchange): Promise<Sink> {
    const operation = await this.#begin(exchange)
    if (operation === undefined)
      return plainSink(this.#parts.tell, exchange, declaredSettings(exchange.peer, streamingExtension) !== undefined)
    const skipped = operation.written
    let at = 0
    return {
      chunk: async (data, length) => {
        // Chunks delivered before a question are not repeated.
        if (at++ >= skipped) await operation.tell({ data }, length)
      },
      end: () => operation.tell({ final: true }, 0),
    }
  }

  /** Undefined if the caller cannot resume. */
  async #begin(exchange: Exchange): Promise<StreamOperation | undefined> {
    if (declaredSettings(exchange.peer, streamingExtension) === undefined || !this.#parts.tell.asked(exchange)) return undefined
    if (!this.#attended.has(exchange) || exchange.aside === undefined || exchange.detached) return undefined
    const [chunkStore, account] = await Promise.all([this.#openChunkStore(), accountOf(exchange)])
    if (!chunkStore.begin(account)) return undefined
    try {
      const operation = await this.#claimed(exchange, chunkStore, account)
      if (operation === undefined) chunkStore.end(account)
      return operation
    } catch (error) {
      chunkStore.end(account)
      throw error
    }
  }

  async #claimed(exchange: Exchange, chunkStore: ChunkStore, account: string): Promise<StreamOperation | undefined> {
    const { clock, trace, shared, tell, graceMs, keepMs, length = standardLength, askMs } = this.#parts
    const [journal, bound] = await Promise.all([this.#parts.journal(), boundOf(exchange)])
    const id = operationId(exchange)
    const feed = feedOf(journal, clock, id)
    const wanted = { target: exchange.params['name'] as string, fingerprint: bound.fingerprint, ttlMs: keepMs, account }
    const claim = await journal.claims
      .claim(bound.owner ?? bearer, keyOf(id), { ...wanted, also: [chunkStore.put(id, askMs)] })
      .catch(withoutCapacity)
    if (claim === undefined) return undefined
    if (claim.kind !== 'fresh') throw checkpointNotFound()
    addRetryState(exchange, streamingExtension, id)
    const operation = new StreamOperation(
      {
        id,
        exchange,
        feed,
        ticket: claim.ticket,
        clock,
        tell,
        graceMs,
        length,
        weigh: by => chunkStore.weigh(account, by),
        token: next => this.#checkpoints.seal(bound, { id, next }),
      },
      await feed.end(),
    )
    if (shared) listenForRemote(journal, clock, operation).catch(error => trace('reader-elsewhere-unheard', error))
    this.#operations.set(id, operation)
    this.#of.set(exchange, { operation, account })
    this.#parts.readers.set(exchange, () => operation.reader)
    return operation
  }

  /** Settles the operation when its call has ended. */
  async #ended(exchange: Exchange, result: CallToolResult | undefined, error: unknown): Promise<void> {
    const found = this.#of.get(exchange)
    if (found === undefined) return
    const { operation, account } = found
    const { id, length } = operation
    const chunkStore = await this.#openChunkStore()
    try {
      // The stored length is released even if the store fails.
      if (exchange.asking?.pending === true || isInputRequired(result)) {
        chunkStore.weigh(account, -length)
        await operation.pause(this.#parts.askMs)
      } else if (exchange.cancelled) {
        chunkStore.weigh(account, -length)
        await operation.drop(await chunkStore.forgetting(id))
      } else {
        const ended = endedWith(result, error)
        await operation
          .settle(ended, [chunkStore.put(id, this.#parts.keepMs)])
          .finally(() => chunkStore.keep(account, id, length))
      }
    } catch (failure) {
      // The current reader gets the answer; only later ones do not.
      this.#parts.trace('outcome-not-recorded', failure)
    } finally {
      this.#operations.delete(id)
      chunkStore.end(account)
    }
  }

  async #resume(exchange: Exchange, id: string, token: string): Promise<unknown> {
    const bound = await boundOf(exchange)
    const checkpoint = await this.#checkpoints.open(bound, token)
    if (checkpoint.id !== id) throw checkpointNotFound()
    nameOperation(exchange, id)
    const here = this.#operations.get(id)
    if (here !== undefined) return give(await here.follow(exchange, checkpoint.next))
    const journal = await this.#parts.journal()
    const tokens = (next: number): Promise<string> => this.#checkpoints.seal(bound, { id, next })
    const find = () => journal.claims.find(bound.owner ?? bearer, keyOf(id))
    return give(await followRemote({ ...this.#parts, journal, find, tokens, exchange, ...checkpoint }))
  }

  #openChunkStore(): Promise<ChunkStore> {
    this.#chunkStore ??= this.#parts.journal().then(journal => new ChunkStore({ ...this.#parts, journal }))
    return this.#chunkStore
  }
}

/** Without room in the journal the call still streams, but cannot be resumed. */
function withoutCapacity(error: unknown): undefined {
  if (error instanceof Problem && (error.code === 'QUOTA_EXHAUSTED' || error.code === 'SERVER_UNAVAILABLE')) return undefined
  throw error
}

/** For callers that cannot resume: chunks if they know them, else plain progress. */
function plainSink(tell: ProgressPort, exchange: Exchange, knows: boolean): Sink {
  const id = operationId(exchange)
  let sequence = 0
  const chunk = (more: Params): boolean =>
    tell.along(exchange, {
      _meta: { [streamingExtension]: { type: 'stream_chunk', operation_id: id, sequence: sequence++, ...more } },
    })
  return {
    chunk: async (data, _length) => {
      if (exchange.cancelled) exchange.signal.throwIfAborted()
      if (knows) chunk({ data })
      else tell.along(exchange, typeof data === 'string' ? { message: data.slice(0, messageLength) } : {}, true)
      await waitForReaders(exchange, exchange.signal)
    },
    end: async () => {
      if (knows) chunk({ is_final: true })
    },
  }
}

/** Until it is over, or has taken too long. */
async function within(clock: Clock, ms: number, work: Promise<unknown>): Promise<void> {
  const late = Promise.withResolvers<void>()
  const cancel = clock.setTimeout(late.resolve, ms)
  await Promise.race([work, late.promise])
  cancel()
}

async function boundOf({ caller, params }: Exchange) {
  const args = (params['arguments'] ?? {}) as Params
  const [owner, print] = await Promise.all([ownerKey(caller), fingerprint(params['name'] as string, args, undefined)])
  return { owner, fingerprint: print }
}

/** Owns anonymous operations, which belong to whoever has the token. */
const bearer = '~bearer'

/** Contains a space, so it cannot collide with a caller's key. */
function keyOf(id: string): string {
  return `stream ${id}`
}

/** Characters of a chunk; undefined for what JSON has no text for, which is no chunk. */
function lengthOf(value: unknown): number | undefined {
  return typeof value === 'string' ? value.length : JSON.stringify(value)?.length
}

// Collects what a generator yields, as the result if it returns nothing.

/** Characters that are gathered; who yields more returns a result of his own. */
const longest = 4 * 1024 * 1024

const blockTypes: ReadonlySet<unknown> = new Set(['text', 'image', 'audio', 'resource', 'resource_link'])

class ChunkCollector {
  #chunks: unknown[] = []
  #length = 0

  add(chunk: unknown, length: number): void {
    this.#length += length
    if (this.#length <= longest) this.#chunks.push(chunk)
    else this.#chunks = []
  }

  /** Strings are joined, content blocks become the content, anything else a list. */
  result(reply: (parts: { readonly content: readonly ContentBlock[] }) => unknown): unknown {
    const chunks = this.#chunks
    if (this.#length > longest)
      throw problem(
        'PAYLOAD_TOO_LARGE',
        `The streamed chunks have ${this.#length} characters, which is too long for a result that repeats them`,
        {
          category: 'permanent',
          suggestion: 'Return a short result from the generator, such as the address of the whole content',
          actor: 'operator',
        },
      )
    if (chunks.length === 0) return undefined
    if (chunks.every(chunk => typeof chunk === 'string')) return chunks.join('')
    return chunks.every(isBlock) ? reply({ content: chunks }) : chunks
  }
}

function isBlock(chunk: unknown): chunk is ContentBlock {
  return isRecord(chunk) && blockTypes.has(chunk['type'])
}
