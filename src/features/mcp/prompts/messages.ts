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

/** An argument of a prompt, as clients are shown it. */
export interface PromptArgument {
  readonly name: string
  /** For people. */
  readonly title?: string
  readonly description?: string
  /** Whether it must be given. Absent: it need not. */
  readonly required?: boolean
}

/** A prompt, as clients are shown it. */
export interface Prompt {
  readonly name: string
  /** For people. */
  readonly title?: string
  /** What it is for. */
  readonly description?: string
  readonly arguments?: readonly PromptArgument[]
  readonly icons?: readonly Icon[]
  readonly _meta?: Readonly<Record<string, unknown>>
}

/** The result of `prompts/list`. */
export interface ListPromptsResult {
  readonly prompts: readonly Prompt[]
  /** Absent on the last page. */
  readonly nextCursor?: string
  /** How long the page may be kept. */
  readonly ttlMs?: number
  readonly cacheScope?: 'public' | 'private'
}

/** One message of a prompt. */
export interface PromptMessage {
  /** Who speaks. */
  readonly role: Role
  readonly content: ContentBlock
}

/** The result of `prompts/get`. */
export interface GetPromptResult {
  readonly description?: string
  /** In the order in which the model is to read them. */
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
