/** The body of an answer, chunk by chunk, without more memory than what is being read. */
import type http from 'node:http'
import { giveBack } from '../../stores/give-back.ts'

type Chunk = Buffer<ArrayBuffer>

/**
 * Each call gives the next chunk as it came from the parser; undefined at the end. Iterating over the response would copy together
 * what has come meanwhile, and leave twice the memory behind.
 */
export function oneByOne(response: http.IncomingMessage, thrift: Thrift): () => Promise<Chunk | undefined> {
  let over: { readonly error?: unknown } | undefined
  let waiting: PromiseWithResolvers<Chunk | undefined> | undefined
  const end = (error?: unknown): void => {
    over ??= error === undefined ? {} : { error }
    if (over.error === undefined) waiting?.resolve(undefined)
    else waiting?.reject(over.error)
  }
  response.pause()
  response.on('data', (chunk: Chunk) => {
    response.pause()
    thrift.parsed(chunk)
    waiting?.resolve(chunk)
  })
  response.on('end', () => end())
  response.on('error', end)
  response.on('close', () => end(new Error('the connection ended within its answer')))
  return async () => {
    if (over?.error !== undefined) throw over.error
    if (over !== undefined) return undefined
    waiting = Promise.withResolvers()
    response.resume()
    return waiting.promise
  }
}

/** Reads that are remembered before the first chunk of a body is there. */
const remembered = 16

/**
 * Node's parser copies bodies out of what the socket has read, and that lies about until it is collected: as much again as the content.
 * It is given back as soon as it is parsed, once the first chunk has shown that it is a copy indeed.
 */
export class Thrift {
  #reads: unknown[] = []
  #copied: boolean | undefined

  constructor(request: http.ClientRequest) {
    request.on('socket', socket => {
      // Heard after the parser, which is there first and takes all of it at once.
      if (socket.listenerCount('data') > 0) socket.on('data', (data: Chunk) => this.#read(data))
    })
  }

  /** A chunk has come of it. */
  parsed({ buffer }: Chunk): void {
    this.#copied ??= !this.#reads.includes(buffer)
    this.#reads = []
  }

  #read(data: Chunk): void {
    if (this.#copied === true) giveBack(data)
    if (this.#copied !== undefined) return
    this.#reads.push(data.buffer)
    // From which of them a chunk comes could no longer be told.
    if (this.#reads.length > remembered) this.#copied = false
  }
}
