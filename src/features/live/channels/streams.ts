/** Answers while a host is writing them: pieces arrive in order, and the author's handler of streams iterates them. */
import type { Clock } from '../../../core/clock.ts'
import { unlessAborted } from '../../../core/deadlines.ts'
import type { Trace } from '../../../core/log.ts'
import type { LiveHost } from '../hosts/messages.ts'
import type { AnswerStream, ChannelHandlers } from './server.ts'

/** Limits: streams per host, and characters per stream. */
const mostStreams = 8
const longestText = 100_000
/** A stream ends after this long without a chunk. */
const silenceMs = 120_000

/** Which stream it is, and whose. */
export interface StreamName {
  readonly channelId: string
  readonly inferenceId: string
  readonly conversationId?: string
}

type PostedMessage = undefined | { readonly messageId?: string }

interface StreamsParts {
  readonly clock: Clock
  readonly trace: Trace
}

class ServerAnswerStream implements AnswerStream {
  readonly channelId: string
  readonly inferenceId: string
  readonly conversationId?: string
  readonly text: Promise<string>
  readonly stop = new AbortController()
  /** What the author's stream handler returned. */
  posted: Promise<PostedMessage> = Promise.resolve(undefined)
  final: string | undefined = undefined
  index = -1
  heardAt: number
  #settle: (text: string) => void
  #all = ''
  #taken = 0
  #wake: (() => void) | undefined = undefined
  constructor({ channelId, inferenceId, conversationId }: StreamName, now: number) {
    this.channelId = channelId
    this.inferenceId = inferenceId
    if (conversationId !== undefined) this.conversationId = conversationId
    this.heardAt = now
    const { promise, resolve } = Promise.withResolvers<string>()
    this.text = promise
    this.#settle = resolve
  }
  add(index: number, delta: string): void {
    // Ignore repeated chunks and chunks after the end.
    if (index <= this.index || this.final !== undefined) return
    this.index = index
    if (this.#all.length + delta.length > longestText) return
    this.#all += delta
    this.#wake?.()
  }
  /** If the final text continues what was received, the missing end is handed to the handler as well. */
  end(text: string = this.#all): void {
    if (this.final !== undefined) return
    this.final = text
    if (text.startsWith(this.#all)) this.#all = text
    this.#settle(text)
    this.#wake?.()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<string, void, undefined> {
    for (;;) {
      if (this.#taken < this.#all.length) {
        const piece = this.#all.slice(this.#taken)
        this.#taken = this.#all.length
        yield piece
      } else if (this.final !== undefined) return
      else
        await new Promise<void>(resolve => {
          this.#wake = resolve
        })
    }
  }
}

/** The answers that hosts are writing, and what the authors' handlers make of them. */
export class AnswerStreams {
  readonly #parts: StreamsParts
  /** By host, then by channel and inference; newest last. */
  readonly #hosts = new WeakMap<LiveHost, Map<string, ServerAnswerStream>>()

  constructor(parts: StreamsParts) {
    this.#parts = parts
  }

  chunk(host: LiveHost, name: StreamName, index: number, delta: string, handler: NonNullable<ChannelHandlers['stream']>): void {
    const stream = this.#of(host).get(keyOf(name)) ?? this.#begin(host, name, handler)
    stream.heardAt = this.#parts.clock.now()
    stream.add(index, delta)
  }

  complete(host: LiveHost, name: StreamName, text: string): void {
    this.#of(host).get(keyOf(name))?.end(text)
  }

  /** What the stream handler has posted for an answer that is published now; removes the stream. `same`: with exactly this text. */
  async posted(
    host: LiveHost,
    channelId: string,
    inferenceId: string | undefined,
    text: string,
    signal: AbortSignal,
  ): Promise<{ readonly messageId: string; readonly same: boolean } | undefined> {
    const streams = this.#of(host)
    const found = [...streams].find(([, stream]) => {
      if (stream.channelId !== channelId) return false
      // Hosts that name no inference are matched by their final text.
      return inferenceId === undefined ? stream.final === text : stream.inferenceId === inferenceId
    })
    if (found === undefined) return undefined
    const [key, stream] = found
    stream.end(text)
    const posted = await unlessAborted(stream.posted, signal)
    streams.delete(key)
    return posted?.messageId === undefined ? undefined : { messageId: posted.messageId, same: stream.final === text }
  }

  /** Ends the streams of a removed channel. */
  drop(hosts: Iterable<LiveHost>, channelId: string): void {
    for (const host of hosts)
      for (const [key, stream] of this.#of(host)) if (stream.channelId === channelId) this.#forget(host, key, stream)
  }

  #of(host: LiveHost): Map<string, ServerAnswerStream> {
    const known = this.#hosts.get(host) ?? new Map<string, ServerAnswerStream>()
    this.#hosts.set(host, known)
    return known
  }

  #begin(host: LiveHost, name: StreamName, handler: NonNullable<ChannelHandlers['stream']>): ServerAnswerStream {
    const { clock, trace } = this.#parts
    const streams = this.#of(host)
    const [oldest] = streams
    if (streams.size >= mostStreams && oldest !== undefined) this.#forget(host, ...oldest)
    const stream = new ServerAnswerStream(name, clock.now())
    streams.set(keyOf(name), stream)
    stream.posted = Promise.resolve()
      .then(() => handler(stream, { signal: stream.stop.signal }))
      .catch(error => {
        trace('channel-stream-failed', error)
        return undefined
      })
    this.#watch(stream)
    return stream
  }

  #watch(stream: ServerAnswerStream): void {
    const { clock } = this.#parts
    const look = (): void => {
      if (stream.final !== undefined) return
      const left = stream.heardAt + silenceMs - clock.now()
      if (left > 0) clock.setTimeout(look, left, true)
      else stream.end()
    }
    clock.setTimeout(look, silenceMs, true)
  }

  #forget(host: LiveHost, key: string, stream: ServerAnswerStream): void {
    stream.end()
    stream.stop.abort(new DOMException('The stream has ended', 'AbortError'))
    this.#of(host).delete(key)
  }
}

function keyOf({ channelId, inferenceId }: StreamName): string {
  return JSON.stringify([channelId, inferenceId])
}
