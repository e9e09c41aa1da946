/** Prompts on the wire: listing and getting, and what each older wire gets instead of what it does not know. */
import type { CallContext } from '../../../engine/context.ts'
import { everyId, notification, officialIds, request } from '../../../engine/method.ts'
import { port } from '../../../engine/ports.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { dictionary, object, optional, record, string } from '../../../jsonrpc/shape.ts'
import type { Icon, Wire } from '../../../revisions/index.ts'
import { withoutCacheHint } from '../caching/messages.ts'
import type { Completers } from '../completion/messages.ts'
import {
  type ContentBlock,
  eachEntry,
  type Role,
  without,
  withoutAudio,
  withoutIcons,
  withoutLinks,
} from '../content/messages.ts'

/** What other features may use of the prompts of a server. */
interface PromptsPort {
  /** What can be completed of a prompt; undefined if there is none such. */
  completers(name: string): Completers<CallContext> | undefined
  /** Whether any prompt can complete. */
  completes(): boolean
  scopes(name: string): readonly string[] | undefined
  /** Calls back when there are others. */
  onChange(fn: () => void): void
}

/** What other features may use of the prompts of a server. */
export const promptsPort = port<PromptsPort>('prompts')

/** An argument of a prompt. */
export interface PromptArgument {
  /** The name of the argument. */
  readonly name: string
  /** The name that people see. */
  readonly title?: string
  /** What to give, in a sentence. */
  readonly description?: string
  /** Whether the argument is required. Default false. */
  readonly required?: boolean
}

/** A prompt of a server. */
export interface Prompt {
  /** The name of the prompt, for `getPrompt`. */
  readonly name: string
  /** The name that people see. */
  readonly title?: string
  /** What the prompt is for, in a sentence. */
  readonly description?: string
  /** The arguments that the prompt takes. */
  readonly arguments?: readonly PromptArgument[]
  /** Images that clients can show next to its name. */
  readonly icons?: readonly Icon[]
  /** Further facts about it (`_meta` on the wire). Names carry a prefix: `example.com/kind`. */
  readonly _meta?: Readonly<Record<string, unknown>>
}

/** The result of `prompts/list`. */
export interface ListPromptsResult {
  /** The prompts of the page. */
  readonly prompts: readonly Prompt[]
  /** Absent on the last page. */
  readonly nextCursor?: string
  /** How long the page may be cached, in milliseconds. */
  readonly ttlMs?: number
  /** Who may reuse the cached result: every caller (`public`) or only this one (`private`). */
  readonly cacheScope?: 'public' | 'private'
}

/** One message of a prompt. */
export interface PromptMessage {
  /** Who speaks. */
  readonly role: Role
  /** The content of the message. */
  readonly content: ContentBlock
}

/** The result of `prompts/get`. */
export interface GetPromptResult {
  /** What the prompt does. */
  readonly description?: string
  /** The messages, in the order in which the model reads them. */
  readonly messages: readonly PromptMessage[]
}

/** Content steps take lists of blocks; a message has one. */
const eachBlock = (change: (blocks: readonly Wire[]) => readonly Wire[]) =>
  eachEntry('messages', message =>
    isRecord(message['content']) ? { ...message, content: change([message['content']])[0] } : message,
  )

/** `prompts/list`: the prompts of a server, page by page. */
export const listPrompts = request<ListPromptsResult>()({
  name: 'prompts/list',
  to: 'server',
  in: everyId,
  params: object({ cursor: optional(string) }),
  resultDown: {
    'draft-2026-v1': withoutCacheHint,
    '2025-11-25': withoutCacheHint,
    '2025-06-18': eachEntry('prompts', prompt => without(prompt, 'icons')),
    '2025-03-26': eachEntry('prompts', prompt =>
      eachEntry('arguments', argument => without(argument, 'title'))(without(prompt, 'title', '_meta')),
    ),
  },
})

/** `prompts/get`: the messages of a prompt for given arguments. */
export const getPrompt = request<GetPromptResult>()({
  name: 'prompts/get',
  to: 'server',
  in: everyId,
  params: object({ name: string, arguments: optional(dictionary(string)) }),
  asks: true,
  nameParam: 'name',
  resultDown: {
    '2025-06-18': eachBlock(withoutIcons),
    '2025-03-26': eachBlock(withoutLinks),
    '2024-11-05': eachBlock(withoutAudio),
  },
})

/** `notifications/prompts/list_changed`: the list of prompts is another one now. */
export const promptsChanged = notification({
  name: 'notifications/prompts/list_changed',
  to: 'client',
  in: officialIds,
  params: record,
})
