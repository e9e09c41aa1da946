/** What a generator yielded, put together: the result of one that returns nothing. */
import { problem } from '../../../core/problem.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import type { ContentBlock } from '../../mcp/content/messages.ts'

/** Characters that are gathered; who yields more returns a result of his own. */
const longest = 4 * 1024 * 1024

const blockTypes: ReadonlySet<unknown> = new Set(['text', 'image', 'audio', 'resource', 'resource_link'])

export class Gathered {
  readonly #reply: (content: readonly ContentBlock[]) => unknown
  #chunks: unknown[] = []
  #length = 0

  constructor(reply: (content: readonly ContentBlock[]) => unknown) {
    this.#reply = reply
  }

  add(chunk: unknown, length: number): void {
    this.#length += length
    if (this.#length <= longest) this.#chunks.push(chunk)
    else this.#chunks = []
  }

  /** Text is one text, content blocks are the content, and anything else is a list. */
  get value(): unknown {
    const chunks = this.#chunks
    if (this.#length > longest)
      throw problem('PAYLOAD_TOO_LARGE', `What was streamed, ${this.#length} characters, is too long to be the result as well`, {
        category: 'permanent',
        suggestion: 'Return a short result from the generator, or say where the whole can be read',
        actor: 'operator',
      })
    if (chunks.length === 0) return undefined
    if (chunks.every(chunk => typeof chunk === 'string')) return chunks.join('')
    return chunks.every(isBlock) ? this.#reply(chunks) : chunks
  }
}

function isBlock(chunk: unknown): chunk is ContentBlock {
  return isRecord(chunk) && blockTypes.has(chunk['type'])
}
