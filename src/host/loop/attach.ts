/** What a user says, as it goes into a conversation: words, resources put beside them, and prompts of servers called by name. */
import { problem } from '../../core/problem.ts'
import type { LiveBlock } from '../../features/live/content/messages.ts'
import { clip } from '../../jsonrpc/limits.ts'
import type { Op } from '../../stores/store.ts'
import { type ModelMessage, textIn } from '../models/model.ts'
import { contentsBlock, text } from './blocks.ts'
import { withOwnWords } from './foreign.ts'
import { readContents } from './host-tools.ts'
import type { LoopParts } from './loop-parts.ts'
import { shorten } from './results.ts'
import { runPrompt } from './slash.ts'

/** A resource to be put beside a message. */
export interface Attachment {
  readonly server: string
  readonly uri: string
}

export interface SendOptions {
  /** Resources that go beside the message. */
  readonly attach?: readonly Attachment[]
  /** Gives up the turn. */
  readonly signal?: AbortSignal
}

export interface Said {
  readonly text: string
  readonly messages: readonly ModelMessage[]
  /** To be written with it. */
  readonly ops: readonly Op[]
}

/** Attachments of one message. */
const most = 16

export async function whatWasSaid(
  parts: LoopParts,
  conversation: string,
  input: string | readonly LiveBlock[],
  { attach = [], signal }: SendOptions,
): Promise<Said> {
  const said = typeof input === 'string' ? input : textIn(input)
  checkLength(parts, said)
  if (attach.length > most)
    throw problem('INVALID_INPUT', `${attach.length} attachments are more than ${most}`, { suggestion: 'Attach fewer' })
  const ops: Op[] = []
  const attached: LiveBlock[] = []
  for (const { server, uri } of attach) {
    for (const contents of await readContents(parts.servers(), server, uri, signal)) {
      const short = shorten([contentsBlock(contents)], conversation, `attached-${parts.newId()}`, parts.limits)
      // Cut first, then quoted: a quotation that is cut has no end.
      attached.push(...withOwnWords('resource', { server, uri: contents.uri, type: contents.mimeType }, short.content))
      ops.push(...short.ops)
    }
  }
  const lead = typeof input === 'string' && isCommand(input) ? await runPrompt(parts.servers(), input, signal) : undefined
  if (lead !== undefined) return { text: said, messages: [{ role: 'user', content: [...attached, ...lead] }], ops }
  const own = typeof input === 'string' ? [text(input.startsWith('//') ? input.slice(1) : input)] : input
  return { text: said, messages: [{ role: 'user', content: [...attached, ...own] }], ops }
}

/** Two slashes stand for one that means nothing. */
function isCommand(input: string): boolean {
  return input.startsWith('/') && !input.startsWith('//')
}

function checkLength({ limits }: LoopParts, said: string): void {
  if (said.length <= limits.messageLength) return
  throw problem(
    'PAYLOAD_TOO_LARGE',
    `The message has ${said.length} characters, the most are ${limits.messageLength}: ${clip(said)}`,
    {
      suggestion: 'Send less at once, or attach it as a resource',
    },
  )
}
